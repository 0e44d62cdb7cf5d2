package events

import (
	"fmt"
	"sync"
	"time"

	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
)

// How many streams one server holds: for one identity, for one tenant, in all.
const (
	maxOfIdentity = 64
	maxOfTenant   = 256
	maxStreams    = 1024
)

// streams counts the open streams.
type streams struct {
	mu         sync.Mutex
	ofIdentity map[string]int
	ofTenant   map[string]int
	all        int
}

func newStreams() *streams {
	return &streams{ofIdentity: map[string]int{}, ofTenant: map[string]int{}}
}

// take reserves a stream; release gives it back.
func (s *streams) take(who iam.Principal) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	identity := who.String()
	for _, count := range []struct {
		whose      string
		held, most int
	}{
		{"identity", s.ofIdentity[identity], maxOfIdentity},
		{"tenant", s.ofTenant[who.Tenant], maxOfTenant},
		{"server", s.all, maxStreams},
	} {
		if count.held >= count.most {
			return nil, fault.RateLimited(fmt.Sprintf("the %s holds %d streams on this server already", count.whose, count.most), 10*time.Second)
		}
	}
	s.add(identity, who.Tenant, 1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.add(identity, who.Tenant, -1)
	}, nil
}

func (s *streams) add(identity, tenant string, n int) {
	s.all += n
	for key, counts := range map[string]map[string]int{identity: s.ofIdentity, tenant: s.ofTenant} {
		if counts[key] += n; counts[key] == 0 {
			delete(counts, key)
		}
	}
}
