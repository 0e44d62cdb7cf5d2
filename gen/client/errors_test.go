package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func asError(err error, target **Error) bool { return errors.As(err, target) }

type steps = []func(*http.Request) (*http.Response, error)

func TestProblems(t *testing.T) {
	t.Parallel()
	body := `{"type":"t","title":"Invalid input","status":400,"code":"INVALID_INPUT","detail":"broken","requestId":"req_1","errors":[{"field":"expect.mac","rule":"pattern","message":"must match"},{"field":"","rule":"json","message":"no JSON"}]}`
	c := scripted(t, &script{steps: steps{answers(400, "application/problem+json; charset=utf-8", body)}})
	_, err := c.Sites.Get(t.Context(), SitesGetInput{})
	var refused *Error
	if !errors.As(fmt.Errorf("wrapped: %w", err), &refused) {
		t.Fatalf("no *Error: %v", err)
	}
	if refused.Status != 400 || refused.Code != ErrorCodeINVALIDINPUT || refused.Title != "Invalid input" || refused.Detail != "broken" || refused.RequestID != "req_1" || len(refused.Violations) != 2 {
		t.Errorf("%+v", refused)
	}
	if want := "INVALID_INPUT: broken: expect.mac: must match (pattern); body: no JSON (json) (request req_1)"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if !IsCode(err, ErrorCodeINVALIDINPUT) || IsCode(err, ErrorCodeCONFLICT) || IsCode(nil, "") || IsCode(errors.New("x"), "") {
		t.Error("IsCode is wrong")
	}
}

func TestAnswersOfOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, media, body, want string
		status                  int
		code                    ErrorCode
	}{
		{"proxy page", "text/html", "<html><head><title>403 Forbidden</title></head>\r\n<body>nginx</body></html>", "HTTP 403 Forbidden: 403 Forbidden nginx", 403, ""},
		{"nothing", "", "", "HTTP 404 Not Found", 404, ""},
		{"terminal escapes", "text/plain", "\x1b[31mred\x00\u009b text \xff", "HTTP 400 Bad Request: [31mred text \ufffd", 400, ""},
		{"JSON of another", "application/json", `{"message":"no route"}`, `HTTP 404 Not Found: {"message":"no route"}`, 404, ""},
		{"broken problem", problemMedia, `{"code":`, `HTTP 409 Conflict: {"code":`, 409, ""},
		{"problem of another", problemMedia, `{"title":"Blocked","detail":"by policy"}`, "HTTP 403 Blocked: by policy", 403, ""},
		{"a code of tomorrow", problemMedia, `{"title":"T","code":"NEW","detail":"d"}`, "NEW: d", 418, "NEW"},
		{"a page as success", "text/html", "<p>Log in, please</p>", `HTTP 200 Unexpected answer: "text/html" instead of application/json: Log in, please`, 200, ""},
		{"no content", "", "", `HTTP 204 Unexpected answer: "" instead of application/json`, 204, ""},
		{"broken JSON", "application/json", `{"site":`, "HTTP 200 Unexpected answer: the answer is not JSON", 200, ""},
		{"other form", "application/json", `{"site":7}`, "sites.get answers in another form", 200, ""},
		{"too large", "application/json", `"` + strings.Repeat("x", maxAnswer) + `"`, "the answer is larger than 16777216 bytes", 200, ""},
	} {
		s := &script{steps: steps{answers(c.status, c.media, c.body)}}
		_, err := scripted(t, s).Sites.Get(t.Context(), SitesGetInput{})
		var refused *Error
		if !errors.As(err, &refused) || refused.Status != c.status || refused.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if len(s.requests) != 1 {
			t.Errorf("%s: %d attempts", c.name, len(s.requests))
		}
	}
}

func TestShortTextIsShort(t *testing.T) {
	t.Parallel()
	if got := shortText([]byte(strings.Repeat("é ", 1<<20))); len([]rune(got)) != maxText+1 || !strings.HasSuffix(got, "…") {
		t.Errorf("%d characters: %q", len([]rune(got)), got)
	}
}

func TestRetryAfterIsTold(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0": 0, "-1": 0, "1.5": 0, "soon": 0, "": 0, "99999999999999999999": 0,
	} {
		c := scripted(t, &script{steps: steps{problem(429, ErrorCodeRATELIMITED, "Retry-After", value)}}, WithRetries(1, 0))
		_, err := c.Sites.Get(t.Context(), SitesGetInput{})
		var refused *Error
		if !errors.As(err, &refused) || refused.RetryAfter != want {
			t.Errorf("Retry-After %q: %v", value, err)
		}
	}
}

func TestLostAnswer(t *testing.T) {
	t.Parallel()
	c := scripted(t, &script{steps: steps{answers(200, "application/json", `{"joinToken":`+token+`}`)}})
	out, err := c.JoinTokens.Create(t.Context(), JoinTokensCreateInput{IdempotencyKey: "k"})
	var lost *LostAnswerError
	if !errors.As(err, &lost) || *lost != (LostAnswerError{"joinTokens.create", "jt_1", "joinTokens.revoke"}) {
		t.Fatalf("%v", err)
	}
	if out == nil || out.JoinToken.ID != "jt_1" || out.Token != nil {
		t.Errorf("the record is not returned: %+v", out)
	}
	for _, want := range []string{"record jt_1 exists", "shown once", "lost", "call joinTokens.revoke with this id"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	c = scripted(t, &script{steps: steps{answers(200, "application/json", `{"joinToken":`+token+`,"token":"bcjt_x"}`)}})
	if out, err := c.JoinTokens.Create(t.Context(), JoinTokensCreateInput{}); err != nil || *out.Token != "bcjt_x" {
		t.Errorf("%+v %v", out, err)
	}
}
