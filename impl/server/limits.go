package server

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// JoinLimits bound how often machines may try to join, on this replica (NJ-7).
type JoinLimits struct {
	PerAddress     float64        // a second, from one address; 0: no limit
	Burst          int            // at once, from one address
	Overall        float64        // a second; 0: no limit
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
}

// maxAddresses is how many addresses are kept apart; the longest unseen is forgotten.
const maxAddresses = 65536

// joinLimits count the joins of the last moments.
type joinLimits struct {
	config    JoinLimits
	now       func() time.Time
	overall   *rate.Limiter
	addresses *lru.Cache[netip.Prefix, *rate.Limiter]
}

func newJoinLimits(config JoinLimits, now func() time.Time) *joinLimits {
	addresses, err := lru.New[netip.Prefix, *rate.Limiter](maxAddresses)
	if err != nil {
		panic(err) // the size is ours
	}
	return &joinLimits{config, now, newLimiter(config.Overall, int(config.Overall)), addresses}
}

func newLimiter(perSecond float64, burst int) *rate.Limiter {
	if perSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(burst, 1))
}

// take counts a join, or says how long to wait before the next one. An address
// that is over its own limit takes nothing of what all have together.
func (l *joinLimits) take(address string) time.Duration {
	if l.config.PerAddress > 0 {
		if wait := takeOf(l.ofAddress(address), l.now()); wait > 0 {
			return wait
		}
	}
	return takeOf(l.overall, l.now())
}

// takeOf takes one or nothing: whoever is refused makes nobody wait longer.
func takeOf(limiter *rate.Limiter, now time.Time) time.Duration {
	if limiter.AllowN(now, 1) {
		return 0
	}
	missing := (1 - limiter.TokensAt(now)) / float64(limiter.Limit())
	return max(time.Duration(missing*float64(time.Second)), 1)
}

func (l *joinLimits) ofAddress(address string) *rate.Limiter {
	key := network(address)
	if limiter, known := l.addresses.Get(key); known {
		return limiter
	}
	limiter := newLimiter(l.config.PerAddress, l.config.Burst)
	if first, known, _ := l.addresses.PeekOrAdd(key, limiter); known { // another call was faster
		return first
	}
	return limiter
}

// network is what counts as one address: of IPv6 the /64, of which a machine
// has as many as it likes.
func network(address string) netip.Prefix {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	bits := 32
	if ip = ip.Unmap(); ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits) // fails only for bits beyond the address
	return prefix
}

// address is where a call comes from: the peer, or what the nearest proxy that
// is not trusted any more was told.
func (l *joinLimits) address(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	at := peer.Addr().Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && l.trusted(at); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		at = hop.Unmap().WithZone("")
	}
	return at.String()
}

func (l *joinLimits) trusted(address netip.Addr) bool {
	for _, proxy := range l.config.TrustedProxies {
		if proxy.Contains(address) {
			return true
		}
	}
	return false
}
