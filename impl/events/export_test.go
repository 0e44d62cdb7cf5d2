package events

import "time"

// SetHeartbeat changes how often a quiet stream shows that it is alive.
func (e *Events) SetHeartbeat(pause time.Duration) { e.heartbeat = pause }
