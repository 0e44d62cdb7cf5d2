package events

import (
	"fmt"
	"sync"
	"time"

	"github.com/bettercompute/bettercompute/impl/fault"
)

// maxStreams is how many streams one identity may hold on one server.
const maxStreams = 64

// streams counts the open streams of each identity.
type streams struct {
	mu   sync.Mutex
	held map[string]int
}

// take reserves a stream; release gives it back.
func (s *streams) take(who string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[who] >= maxStreams {
		return nil, fault.RateLimited(fmt.Sprintf("the identity holds %d streams on this server already", maxStreams), 10*time.Second)
	}
	s.held[who]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held[who]--; s.held[who] == 0 {
			delete(s.held, who)
		}
	}, nil
}
