package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// holdings says who holds which of the identifiers of a kind, such as
// "a=nd_1 b=nd_2 b=nd_3(shared)".
func holdings(t testing.TB, db *store.DB, kind string, values ...string) string {
	t.Helper()
	var identifiers []store.Identifier
	for _, value := range values {
		identifiers = append(identifiers, store.Identifier{Kind: kind, Value: value})
	}
	list, err := db.Holdings(t.Context(), "acme", "lab", identifiers)
	must(t, err)
	var texts []string
	for _, held := range list {
		text := held.Value + "=" + held.Node.ID
		if held.Shared {
			text += "(shared)"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

func serials(values ...string) (identifiers []store.Identifier) {
	for _, value := range values {
		identifiers = append(identifiers, store.Identifier{Kind: "serial", Value: value})
	}
	return identifiers
}

func TestNJ_5_Reclaim_SameNodeAndNothingOfTheOldMachineIsLeft(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		for n := range 2 {
			mint(t, db, tokenID(n), func(token *store.JoinToken) { token.MaxUses = 9 })
		}
		old := newClaim(tokenID(0), "old")
		old.Tells, old.Node.Trust = serials("stays", "goes", "moves"), "platform"
		old = joined(t, db, old)
		bystander := joined(t, db, newClaim(tokenID(0), "bystander"))
		must(t, db.ConfirmCertificate(t.Context(), old.Certificate, "0.1"))
		clock.Advance(30 * time.Minute)
		before := certificate(t, db, bystander.Certificate.Serial)
		eventsSince(t, db)

		c := takeover(t, db, tokenID(1), "new", old)
		c.Node.Hosted, c.Tells = "kubernetes", append(serials("stays", "moves", "comes"), store.Identifier{Kind: "mac", Value: "goes"})
		claim(t, db, c)

		want := node(t, db, old.Node.ID)
		if want.CreatedAt != noon || want.JoinedAt != clock.Now() || want.ConfirmedAt != nil || want.LastSeenAt != nil || want.AgentVersion != "" ||
			want.TokenID != tokenID(1) || want.Trust != "tenant-owned" || want.Hosted != "kubernetes" || !reflect.DeepEqual(want.Claims, store.Claims{Serial: "new"}) ||
			want.CertificateSerial != c.Certificate.Serial {
			t.Errorf("the node is %+v", want)
		}
		if c := certificate(t, db, old.Certificate.Serial); c.RevokedAt == nil || !c.RevokedAt.Equal(clock.Now()) {
			t.Errorf("the old certificate is %+v", c)
		}
		if got := certificate(t, db, bystander.Certificate.Serial); !reflect.DeepEqual(got, before) {
			t.Errorf("another node's certificate is %+v", got)
		}
		if got, want := holdings(t, db, "serial", "stays", "goes", "moves", "comes", "bystander"), "bystander=nd_bystander comes=nd_old moves=nd_old stays=nd_old"; got != want {
			t.Errorf("holdings %s, want %s", got, want)
		}
		if got := holdings(t, db, "mac", "stays", "goes"); got != "goes=nd_old" {
			t.Errorf("holdings %s", got)
		}
		use, err := db.JoinUse(t.Context(), tokenID(1), c.Certificate.CSRSHA256)
		must(t, err)
		if !use.Reclaimed || use.NodeID != old.Node.ID {
			t.Errorf("use %+v", use)
		}
		if got := eventsSince(t, db); len(got) != 1 || !strings.HasPrefix(got[0], "security.node.reclaimed nd_old ") || !strings.Contains(got[0], `"trust":"tenant-owned"`) {
			t.Errorf("events %v", got)
		}
		if a, b := count(t, db, "join_uses WHERE token_id = '"+tokenID(1)+"'"), count(t, db, "join_tokens WHERE uses = 1"); a != 1 || b != 1 {
			t.Errorf("%d rows in the ledger, %d tokens with one use", a, b)
		}
	})
}

// Of two machines that race for one identity one gets it; the other is told to
// look again, and has changed nothing.
func TestNJ_5_TwoMachinesRaceForOneIdentity(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		rounds := 25
		if !isPostgres(db) {
			rounds = 8
		}
		mint(t, db, tokenID(0), func(token *store.JoinToken) { token.MaxUses = 10_000 })
		handles := replicas(t, db)
		race := func(claims ...store.Claim) (winner store.Claim) {
			t.Helper()
			outcomes := make([]store.ClaimOutcome, len(claims))
			together(len(claims), func(i int) {
				var err error
				if outcomes[i], err = handles[i%2].ClaimJoin(t.Context(), claims[i]); err != nil {
					t.Error(err)
				}
			})
			if got, want := tally(outcomes), fmt.Sprintf("%d:1 %d:%d", store.Claimed, store.Overtaken, len(claims)-1); got != want {
				t.Fatalf("outcomes %s, want %s", got, want)
			}
			return claims[slices.Index(outcomes, store.Claimed)]
		}
		for round := range rounds {
			name := func(i int) string { return fmt.Sprint(round, "-", i) }
			var news, overs []store.Claim
			for i := range 4 {
				c := newClaim(tokenID(0), name(i))
				c.Tells = append(c.Tells, serials(fmt.Sprint("one ", round), fmt.Sprint("another ", round))...)
				news = append(news, c)
			}
			winner := race(news...)
			for i := range 4 {
				overs = append(overs, takeover(t, db, tokenID(0), name(10+i), winner))
			}
			last := race(overs...)
			if n := node(t, db, winner.Node.ID); n.CertificateSerial != last.Certificate.Serial {
				t.Fatalf("the node has certificate %s, want the winner's %s", n.CertificateSerial, last.Certificate.Serial)
			}
		}
		token, err := db.JoinToken(t.Context(), tokenID(0))
		must(t, err)
		valid, uses := count(t, db, "node_certificates WHERE revoked_at IS NULL"), count(t, db, "join_uses")
		if nodes := count(t, db, "nodes"); nodes != rounds || valid != rounds || uses != 2*rounds || int(token.Uses) != uses {
			t.Errorf("%d nodes, %d valid certificates, %d in the ledger, %d uses after %d rounds", nodes, valid, uses, token.Uses, rounds)
		}
	})
}

// A machine that reports while another one takes its node over keeps it, or has
// lost it with all its certificates.
func TestNJ_5_TakeOverRacesReportAndRenewal(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		rounds := 20
		if !isPostgres(db) {
			rounds = 6
		}
		mint(t, db, tokenID(0), func(token *store.JoinToken) { token.MaxUses = 10_000 })
		handles := replicas(t, db)
		for round := range rounds {
			old := joined(t, db, newClaim(tokenID(0), fmt.Sprint("old", round)))
			was := node(t, db, old.Node.ID)
			over := takeover(t, db, tokenID(0), fmt.Sprint("new", round), old)
			next := newClaim("", fmt.Sprint("next", round)).Certificate
			next.NodeID = old.Node.ID
			var outcome store.ClaimOutcome
			var seen, renewed error
			together(3, func(i int) {
				var err error
				switch i {
				case 0:
					outcome, err = handles[0].ClaimJoin(t.Context(), over)
				case 1:
					if round%2 == 0 {
						err = handles[1].ConfirmCertificate(t.Context(), old.Certificate, "0.1")
					} else {
						err = handles[1].Seen(t.Context(), old.Node.ID, "0.1")
					}
				case 2:
					_, renewed = handles[1].RenewCertificate(t.Context(), was, "", next)
				}
				if err != nil {
					t.Error(err)
				}
			})
			valid := count(t, db, "node_certificates WHERE revoked_at IS NULL AND node_id = '"+old.Node.ID+"'")
			switch n := node(t, db, old.Node.ID); outcome {
			case store.Claimed:
				if valid != 1 || n.CertificateSerial != over.Certificate.Serial {
					t.Errorf("round %d: %d valid certificates after the take-over, renewal %v", round, valid, renewed)
				}
			case store.Overtaken:
				if n.LastSeenAt == nil || !n.JoinedAt.Equal(was.JoinedAt) || renewed != nil {
					t.Errorf("round %d: refused, and the node is %+v, seen %v, renewal %v", round, n, seen, renewed)
				}
			default:
				t.Errorf("round %d: outcome %d", round, outcome)
			}
		}
	})
}

func TestNJ_5_SharedIdentifiersTellNobody(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		mint(t, db, tokenID(0), func(token *store.JoinToken) { token.MaxUses = 100 })
		one, two, three := newClaim(tokenID(0), "1"), newClaim(tokenID(0), "2"), newClaim(tokenID(0), "3")
		one.Tells, two.Tells = serials("a", "own1"), serials("b", "own2")
		three.Tells, three.Shares = serials("own3"), serials("b", "a")
		claim(t, db, one)
		claim(t, db, two)
		claim(t, db, three)
		all := []string{"a", "b", "own1", "own2", "own3"}
		check := func(when, want string) {
			t.Helper()
			if got := holdings(t, db, "serial", all...); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		check("shared", "a=nd_1(shared) a=nd_3(shared) b=nd_2(shared) b=nd_3(shared) own1=nd_1 own2=nd_2 own3=nd_3")
		four := newClaim(tokenID(0), "4") // a fourth one has it, too
		four.Tells, four.Shares = nil, serials("a")
		claim(t, db, four)
		write(t, db, func(tx *store.Tx) error {
			_, err := tx.RemoveNode(t.Context(), "acme", "lab", "nd_3", "acme/ops")
			return err
		})
		check("one removed", "a=nd_1(shared) a=nd_4(shared) b=nd_2(shared) own1=nd_1 own2=nd_2")
		over := takeover(t, db, tokenID(0), "5", two) // who takes a node over presents what tells it
		over.Tells = serials("own2")
		claim(t, db, over)
		check("one taken over", "a=nd_1(shared) a=nd_4(shared) own1=nd_1 own2=nd_2")
		if got, err := db.Holdings(t.Context(), "acme", "lab", nil); got != nil || err != nil {
			t.Errorf("no identifiers are held by %v, error %v", got, err)
		}
		for _, at := range [][2]string{{"acme", "other"}, {"umbrella", "lab"}} { // other pools and tenants are not touched
			if got, err := db.Holdings(t.Context(), at[0], at[1], serials(all...)); len(got) != 0 || err != nil {
				t.Errorf("%v: held by %v, error %v", at, got, err)
			}
		}
		if got, err := db.Holdings(t.Context(), "acme", "lab", []store.Identifier{{Kind: "mac", Value: "own1"}, {Kind: "serial", Value: "own2"}}); len(got) != 1 || err != nil || got[0].Value != "own2" {
			t.Errorf("of two kinds: %v, error %v", got, err)
		}
	})
}

// The same machine may be a node of another pool: pools know nothing of each other.
func TestNJ_5_OtherPoolsAreNotTouched(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		other := lab()
		other.PoolID = "other"
		write(t, db, func(tx *store.Tx) error { _, _, err := tx.CreatePool(t.Context(), other); return err })
		mint(t, db, tokenID(0), nil)
		mint(t, db, tokenID(1), func(token *store.JoinToken) { token.PoolID = "other" })
		here, there := newClaim(tokenID(0), "here"), newClaim(tokenID(1), "there")
		there.Node.PoolID, there.Tells = "other", here.Tells
		claim(t, db, here)
		if outcome := tryClaim(t, db, there); outcome != store.Claimed {
			t.Errorf("outcome %d", outcome)
		}
		if got := holdings(t, db, "serial", "here"); got != "here=nd_here" {
			t.Errorf("held by %s", got)
		}
	})
}
