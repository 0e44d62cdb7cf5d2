package hardware

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// maxClaims is the size of a file of claims; the server takes no more in all.
const maxClaims = 64 << 10

// ReadFile reads claims from a file, in place of what [Collect] finds: an
// object of the API's form, held against every rule of the API.
func ReadFile(name string) (Claims, error) {
	f, err := os.Open(name)
	if err != nil {
		return Claims{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxClaims+1))
	if err == nil && len(text) > maxClaims {
		err = fmt.Errorf("is larger than %d bytes", maxClaims)
	}
	var claims Claims
	if err == nil {
		claims, err = Parse(text)
	}
	if err != nil {
		return Claims{}, fmt.Errorf("%s: %w", name, cause(err))
	}
	return claims, nil
}

// Parse reads claims from JSON. An error names every field that is wrong, and
// the rule.
func Parse(text []byte) (Claims, error) {
	if len(strings.TrimSpace(string(text))) == 0 {
		return Claims{}, errors.New("is empty, and must hold the claims as a JSON object")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil { // one value and no more, so that it can stand inside another
		return Claims{}, fmt.Errorf("is not JSON: %w", err)
	}
	if err := held(text, strictjson.All); err != nil {
		return Claims{}, err
	}
	var claims Claims
	if err := json.Unmarshal(text, &claims); err != nil {
		return Claims{}, err
	}
	return claims, nil
}

// taken says whether the API takes these claims.
func (c Claims) taken() bool {
	text, err := json.Marshal(c)
	return err == nil && held(text, strictjson.First) == nil
}

// held holds the JSON of claims against the input of nodes.join, in which they stand.
func held(claims []byte, mode strictjson.Mode) error {
	var in wire.NodesJoinInput
	err := in.DecodeStrict(`{"csr": "-", "claims": `+string(claims)+`}`, mode)
	var violations strictjson.Violations
	if errors.As(err, &violations) {
		for i, v := range violations {
			violations[i].Field = strings.TrimPrefix(v.Field, "claims.")
		}
		return violations
	}
	return err
}
