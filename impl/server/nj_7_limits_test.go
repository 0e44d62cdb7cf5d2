package server_test

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/server"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// loopback are the addresses that tests call from.
var loopback = netip.MustParsePrefix("127.0.0.0/8")

// limited sets the limits of joins, and whether this machine is a trusted proxy.
func limited(limits server.JoinLimits, proxies ...netip.Prefix) func(*setup) {
	limits.TrustedProxies = proxies
	return func(s *setup) { s.config.JoinLimits = limits }
}

// joinFrom is join by way of proxies.
func (s *running) joinFrom(t testing.TB, address, token string, m machine) answer {
	t.Helper()
	request := s.request(t, token, "nodes.join", m.body())
	request.Header.Set("X-Forwarded-For", address)
	return s.do(t, request)
}

// knock tries to join with a token that is none, and says whether it was too early.
func (s *running) knock(t testing.TB, address string) (wait string, early bool) {
	t.Helper()
	request := s.request(t, "x", "nodes.join", "{}")
	request.Header.Set("X-Forwarded-For", address)
	a := s.do(t, request)
	if a.status != http.StatusTooManyRequests {
		a.refused(t, problem.Unauthenticated)
		return "", false
	}
	a.refused(t, problem.RateLimited)
	return a.header.Get("Retry-After"), true
}

// knocks tries n times and returns how often that was not too early.
func (s *running) knocks(t testing.TB, n int, address string) (answered int) {
	t.Helper()
	for range n {
		if _, early := s.knock(t, address); !early {
			answered++
		}
	}
	return answered
}

// TestNJ_7_LimitOfAnAddress holds that an address has its burst and its rate,
// is told when to come back, and keeps nobody else from joining; that an IPv6
// network is one address; and that who is refused is recorded, and takes nothing
// of what all have together.
func TestNJ_7_LimitOfAnAddress(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		ops, one, other := s.withPools(t).key(t, "acme/ops", "tenant-admin"), "192.0.2.1", "192.0.2.2"
		if n := s.knocks(t, 9, one); n != 5 {
			t.Errorf("%d of nine at once were answered", n)
		}
		if wait, early := s.knock(t, one); !early || wait != "2" {
			t.Errorf("early: %v, Retry-After: %q", early, wait)
		}
		// It is for joins, whoever they are of, and for nothing else.
		token, _ := s.bearerOf(t, ops, nil)
		s.joinFrom(t, one, token, newMachine(t, nil)).refused(t, problem.RateLimited)
		s.joinFrom(t, "192.0.2.1, 192.0.2.1", token, newMachine(t, nil)).refused(t, problem.RateLimited)
		if a := s.joinFrom(t, other, token, newMachine(t, nil)); a.status != http.StatusOK {
			t.Errorf("another address: %d %s", a.status, a.body)
		}
		request := s.request(t, ops, "nodes.list", object{"tenantId": "acme", "poolId": "lab"})
		request.Header.Set("X-Forwarded-For", one)
		as[api.NodesListOutput](t, s.do(t, request))

		s.clock.Advance(2*time.Second - time.Nanosecond)
		if wait, early := s.knock(t, one); !early || wait != "1" {
			t.Errorf("early: %v, Retry-After: %q", early, wait)
		}
		s.clock.Advance(time.Nanosecond)
		if n := s.knocks(t, 3, one); n != 1 {
			t.Errorf("%d were answered two seconds later", n)
		}
		s.clock.Advance(time.Hour)
		if n := s.knocks(t, 6, one); n != 5 {
			t.Errorf("%d were answered an hour later", n)
		}

		s.clock.Advance(time.Hour)
		if n := s.knocks(t, 3, "2001:db8:0:1::1") + s.knocks(t, 3, "2001:db8:0:1:ffff::2"); n != 5 {
			t.Errorf("of one /64 %d were answered", n)
		}
		if n := s.knocks(t, 1, "2001:db8:0:2::1"); n != 1 {
			t.Error("another /64 must wait")
		}
		s.clock.Advance(time.Hour)
		if n := s.knocks(t, 3, "::ffff:192.0.2.3") + s.knocks(t, 3, "192.0.2.3"); n != 5 {
			t.Errorf("of one address in two forms %d were answered", n)
		}

		if n := s.denied(t, "join-token/*", "nodes.join", "compute-pool/*", "rate_limited"); n != 13 {
			t.Errorf("%d refusals for coming too early are recorded", n)
		}
		if events := s.published(t, "acme", "security.join.rejected"); len(events) != 0 {
			t.Errorf("events %+v", events)
		}
	}, limited(server.JoinLimits{PerAddress: 0.5, Burst: 5, Overall: 8}, loopback))
}

// TestNJ_7_LimitOverall holds that all addresses have one rate together.
func TestNJ_7_LimitOverall(t *testing.T) {
	t.Parallel()
	s := startTLS(t, storetest.SQLite, clockAt(noon), limited(server.JoinLimits{Overall: 3}, loopback))
	if n := s.knocks(t, 2, "192.0.2.1") + s.knocks(t, 2, "192.0.2.2"); n != 3 {
		t.Errorf("%d of four at once were answered", n)
	}
	if wait, early := s.knock(t, "192.0.2.3"); !early || wait != "1" {
		t.Errorf("early: %v, Retry-After: %q", early, wait)
	}
	s.clock.Advance(time.Second)
	if n := s.knocks(t, 4, "192.0.2.4"); n != 3 {
		t.Errorf("%d were answered a second later", n)
	}
}

// TestNJ_7_LimitOfANode holds that a node has its rate, whatever it calls, and
// keeps no other node from calling.
func TestNJ_7_LimitOfANode(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		_, token, n := s.withNode(t) // with its first call
		other := s.confirmed(t, token, newMachine(t, nil))
		for range 9 {
			as[api.NodesReportOutput](t, n.call(t, "nodes.report", object{}))
		}
		for method, body := range selfMethods(t) {
			a := n.call(t, method, body)
			if a.refused(t, problem.RateLimited); a.header.Get("Retry-After") != "1" {
				t.Errorf("%s: Retry-After is %q", method, a.header.Get("Retry-After"))
			}
		}
		as[api.NodesReportOutput](t, other.call(t, "nodes.report", object{}))
		s.clock.Advance(time.Second)
		as[api.NodesReportOutput](t, n.call(t, "nodes.report", object{}))
		n.call(t, "nodes.report", object{}).refused(t, problem.RateLimited)
	}, limited(server.JoinLimits{PerNode: 1}))
}

// TestNJ_7_WhoIsRefusedMakesNobodyWait holds that a flood is over when it is
// over: calls that were refused, many at once, are no debt.
func TestNJ_7_WhoIsRefusedMakesNobodyWait(t *testing.T) {
	t.Parallel()
	s := startTLS(t, storetest.SQLite, clockAt(noon), limited(server.JoinLimits{PerAddress: 1, Burst: 1, Overall: 1}))
	s.client = clientOf(t, s.trusting(t))
	together(16, func(int) { s.knocks(t, 8, "") })
	s.clock.Advance(time.Second)
	if _, early := s.knock(t, ""); early {
		t.Error("a second after the flood a join must wait")
	}
}

// TestNJ_7_WithoutLimits holds that zero is no limit.
func TestNJ_7_WithoutLimits(t *testing.T) {
	t.Parallel()
	s := startTLS(t, storetest.SQLite, clockAt(noon))
	if n := s.knocks(t, 100, ""); n != 100 {
		t.Errorf("%d of a hundred were answered", n)
	}
}

// TestNJ_7_OnlyATrustedProxyIsBelieved holds that nobody chooses its own address.
func TestNJ_7_OnlyATrustedProxyIsBelieved(t *testing.T) {
	t.Parallel()
	s := startTLS(t, storetest.SQLite, clockAt(noon), limited(server.JoinLimits{PerAddress: 1, Burst: 2}, netip.MustParsePrefix("10.0.0.0/8")))
	if n := s.knocks(t, 2, "192.0.2.1") + s.knocks(t, 2, "192.0.2.2") + s.knocks(t, 2, "10.0.0.1"); n != 2 {
		t.Errorf("%d of one address were answered", n)
	}
}

// TestNJ_7_AddressOfACaller holds what is made of X-Forwarded-For.
func TestNJ_7_AddressOfACaller(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("fe80::/10")}
	for _, c := range []struct {
		peer      string
		forwarded []string
		want      string
	}{
		{"192.0.2.1:4711", nil, "192.0.2.1"},
		{"[2001:db8::1]:4711", nil, "2001:db8::1"},
		{"[::ffff:192.0.2.1]:4711", nil, "192.0.2.1"},
		{"[fe80::1%eth0]:4711", nil, "fe80::1"},
		{"192.0.2.1:4711", []string{"192.0.2.9"}, "192.0.2.1"}, // no proxy of ours
		{"10.0.0.1:4711", nil, "10.0.0.1"},
		{"10.0.0.1:4711", []string{""}, "10.0.0.1"},
		{"10.0.0.1:4711", []string{"192.0.2.9"}, "192.0.2.9"},
		{"[::ffff:10.0.0.1]:4711", []string{"192.0.2.9"}, "192.0.2.9"},
		{"[fe80::1%eth0]:4711", []string{"192.0.2.9"}, "192.0.2.9"},
		{"10.0.0.1:4711", []string{" 2001:DB8::9 "}, "2001:db8::9"},
		{"10.0.0.1:4711", []string{"::ffff:192.0.2.9"}, "192.0.2.9"},
		{"10.0.0.1:4711", []string{"fe80::9%<script>"}, "fe80::9"},
		// A chain counts from its end, up to the first that is no proxy of ours.
		{"10.0.0.1:4711", []string{"192.0.2.8, 192.0.2.9"}, "192.0.2.9"},
		{"10.0.0.1:4711", []string{"192.0.2.8, 192.0.2.9, 10.0.0.2,fd00::3"}, "192.0.2.9"},
		{"10.0.0.1:4711", []string{"192.0.2.8", "192.0.2.9", "10.0.0.2"}, "192.0.2.9"},
		{"10.0.0.1:4711", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		// What cannot be read ends it at the proxy that has sent it.
		{"10.0.0.1:4711", []string{"unknown"}, "10.0.0.1"},
		{"10.0.0.1:4711", []string{"192.0.2.9:80"}, "10.0.0.1"},
		{"10.0.0.1:4711", []string{"192.0.2.9,"}, "10.0.0.1"},
		{"10.0.0.1:4711", []string{"192.0.2.9, for=x, 10.0.0.2"}, "10.0.0.2"},
		{"10.0.0.1:4711", []string{"for=x, 192.0.2.9"}, "192.0.2.9"},
	} {
		request := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		if got := server.AddressOf(server.JoinLimits{TrustedProxies: proxies}, request); got != c.want {
			t.Errorf("from %s, for %q: %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}

// FuzzNJ_7_AddressOfACaller holds that whatever a header says, the address is
// one, and is the peer's own where that is no proxy of ours.
func FuzzNJ_7_AddressOfACaller(f *testing.F) {
	for _, seed := range []string{"", "192.0.2.1", "2001:db8::1, 10.0.0.1", "::ffff:10.0.0.1,,", "fe80::1%x, 10.0.0.2", "for=x"} {
		f.Add(true, seed)
		f.Add(false, seed)
	}
	limits := server.JoinLimits{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	f.Fuzz(func(t *testing.T, proxy bool, forwarded string) {
		peer := "192.0.2.7"
		if proxy {
			peer = "10.0.0.7"
		}
		got := server.AddressOf(limits, &http.Request{RemoteAddr: peer + ":4711", Header: http.Header{"X-Forwarded-For": {forwarded}}})
		if address, err := netip.ParseAddr(got); err != nil || address.Zone() != "" || address.Is4In6() || address.String() != got {
			t.Errorf("%q", got)
		}
		if !proxy && got != peer {
			t.Errorf("%s became %s", peer, got)
		}
	})
}
