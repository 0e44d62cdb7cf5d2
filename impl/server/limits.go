package server

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// JoinLimits bound how often machines may try to join, and nodes call, on this
// replica (NJ-7).
type JoinLimits struct {
	PerAddress     float64        // a second, from one address; 0: no limit
	Burst          int            // at once, from one address
	Overall        float64        // a second; 0: no limit
	PerNode        float64        // calls of one node a second; 0: no limit
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
}

// How many addresses and nodes are kept apart; the longest unseen is forgotten.
const (
	maxAddresses = 65536
	maxNodes     = 65536
	nodeBurst    = 10 // seconds' worth of calls
)

// joinLimits count the joins of the last moments.
type joinLimits struct {
	config    JoinLimits
	now       func() time.Time
	overall   *rate.Limiter
	addresses *lru.Cache[netip.Prefix, *rate.Limiter]
	nodes     *lru.Cache[string, *rate.Limiter]
}

func newJoinLimits(config JoinLimits, now func() time.Time) *joinLimits {
	return &joinLimits{
		config: config, now: now, overall: newLimiter(config.Overall, int(config.Overall)),
		addresses: newLimiters[netip.Prefix](maxAddresses), nodes: newLimiters[string](maxNodes),
	}
}

func newLimiters[K comparable](size int) *lru.Cache[K, *rate.Limiter] {
	limiters, err := lru.New[K, *rate.Limiter](size)
	if err != nil {
		panic(err) // the size is ours
	}
	return limiters
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
	return limiterOf(l.addresses, network(address), l.config.PerAddress, l.config.Burst)
}

// takeOfNode counts a call of a node, or says how long to wait before the next one.
func (l *joinLimits) takeOfNode(id string) time.Duration {
	if l.config.PerNode <= 0 {
		return 0
	}
	return takeOf(limiterOf(l.nodes, id, l.config.PerNode, int(nodeBurst*l.config.PerNode)), l.now())
}

func limiterOf[K comparable](limiters *lru.Cache[K, *rate.Limiter], key K, perSecond float64, burst int) *rate.Limiter {
	if limiter, known := limiters.Get(key); known {
		return limiter
	}
	limiter := newLimiter(perSecond, burst)
	if first, known, _ := limiters.PeekOrAdd(key, limiter); known { // another call was faster
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
