package main_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
)

// stopTime is how long bcd may take to stop.
const stopTime = 10 * time.Second

// A manager listens as systemd does.
type manager struct {
	socket string
	mu     sync.Mutex
	heard  []string
}

func newManager(t testing.TB) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "bcd") // a socket has a short name
	must(t, err)
	m := &manager{socket: filepath.Join(dir, "s")}
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	must(t, err)
	var done sync.WaitGroup
	done.Go(func() {
		for buffer := make([]byte, 64<<10); ; {
			n, err := c.Read(buffer)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.heard = append(m.heard, string(buffer[:n]))
			m.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		c.Close()
		done.Wait()
		os.RemoveAll(dir)
	})
	return m
}

// says whether a message was heard that begins so.
func (m *manager) says(start string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, text := range m.heard {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// reported waits until a machine has reported.
func (m *machine) reported() {
	m.t.Helper()
	eventually(m.t, "it has reported", func() bool {
		status, _ := m.status()
		return status.LastReportAt != nil && status.Problem == ""
	})
}

// TestRun_JoinsReportsAndStops holds the life of the daemon under systemd, and
// that its token is neither in its arguments nor in its environment.
func TestRun_JoinsReportsAndStops(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	sd := newManager(t)
	p := m.run(setting{env: []string{"NOTIFY_SOCKET=" + sd.socket, "WATCHDOG_USEC=100000"}}, "--metrics-listen", ":0")
	address := p.await(t, p.stderr, `metrics=(127\.0\.0\.1:\d+)`)[1]
	m.reported()
	status, well := m.status()
	if node := s.node(t); !well || node.ID != status.NodeID || node.LastSeenAt == nil || node.Status != client.NodeStatusActive {
		t.Errorf("the server has %+v", node)
	}
	for _, file := range []string{"cmdline", "environ"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
		must(t, err)
		wantNoToken(t, file, string(text), token)
	}
	response, err := http.Get("http://" + address + "/metrics")
	must(t, err)
	text, err := io.ReadAll(response.Body)
	must(t, err)
	response.Body.Close()
	for _, line := range []string{`bcd_join_state{state="joined"} 1`, `bcd_calls_total{call="join",result="ok"} 1`, `bcd_calls_total{call="report",result="ok"} 1`, "bcd_certificate_end_timestamp_seconds 1", "bcd_clock_offset_seconds"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the metrics have no %s:\n%s", line, text)
		}
	}
	eventually(t, "systemd was told all", func() bool {
		return sd.says("READY=1\nSTATUS=joins") && sd.says("STATUS=node "+status.NodeID+", certificate until ") && sd.says("WATCHDOG=1")
	})
	m.join().refused(t, 1, "another bcd works on the state folder")
	m.stops(p)
	eventually(t, "systemd was told of the end", func() bool { return sd.says("STOPPING=1") })
}

// stops sends SIGTERM and checks that the end is in time, and without an error.
func (m *machine) stops(p *process) {
	m.t.Helper()
	asked := time.Now()
	p.signal(m.t, syscall.SIGTERM)
	if code := p.exit(m.t); code != 0 {
		m.t.Errorf("exit code %d", code)
	}
	if took := time.Since(asked); took > stopTime {
		m.t.Errorf("the stop took %v", took)
	}
}

// TestRun_StopsAlsoWhileTheServerSaysNothing holds that a call in flight is not waited for.
func TestRun_StopsAlsoWhileTheServerSaysNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	s.signal(t, syscall.SIGSTOP)
	t.Cleanup(func() { _ = s.cmd.Process.Signal(syscall.SIGCONT) })
	p := m.run(setting{})
	p.await(t, p.stderr, "bcd runs")
	m.stops(p)
}

// TestRun_WaitsOutADeferral holds that an approved machine gets in by itself.
func TestRun_WaitsOutADeferral(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	m.claim(`{"serial": "System Serial Number"}`)
	p := m.run(setting{})
	p.await(t, p.stderr, "an operator must approve this join")
	s.approve(t)
	m.stops(p) // the server may ask to wait for longer than a test does
	m.run(setting{})
	m.reported()
}

// TestRun_ABanIsNoEnd holds that a banned node says so, keeps its identity, and
// works again when the ban is lifted.
func TestRun_ABanIsNoEnd(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	m.joins()
	node := s.node(t).ID
	_, err := s.admin.Nodes.Ban(t.Context(), client.NodesBanInput{TenantID: platform, PoolID: lab, NodeID: node})
	must(t, err)
	p := m.run(setting{})
	p.await(t, p.stderr, "the node is banned")
	eventually(t, "status says it", func() bool {
		status, _ := m.status()
		return strings.Contains(status.Problem, "the node is banned")
	})
	m.says("banned", "an operator must unban or remove it")
	_, err = s.admin.Nodes.Unban(t.Context(), client.NodesUnbanInput{TenantID: platform, PoolID: lab, NodeID: node})
	must(t, err)
	m.reported()
	m.says("joined", "reports every 30 seconds")
	p.await(t, p.stderr, "report succeeds again")
	m.stops(p)
}

// TestRun_ARemovedNodeJoinsAnew holds that it needs a token that is still good.
func TestRun_ARemovedNodeJoinsAnew(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{MaxUses: ptr(int64(2))})
	m := newMachine(t, s, 1, token)
	m.joins()
	first := s.node(t).ID
	remove := func(id string) {
		_, err := s.admin.Nodes.Remove(t.Context(), client.NodesRemoveInput{TenantID: platform, PoolID: lab, NodeID: id})
		must(t, err)
	}
	remove(first)
	p := m.run(setting{})
	m.reported()
	second := s.node(t).ID
	if second == first {
		t.Errorf("node %s is back", first)
	}
	m.stops(p)
	remove(second)
	p = m.run(setting{})
	if code := p.exit(t); code != 1 || !strings.Contains(p.stderr.String(), "the server refuses the token") {
		t.Errorf("exit code %d", code)
	}
	m.says("ended", "join with a new token")
}

// TestNJ_6_ARenewalIsResumedAfterAKill holds that a renewal whose answer was
// lost, of a daemon that was killed then, is the same renewal afterwards, and
// that lowered trust arrives by it.
func TestNJ_6_ARenewalIsResumedAfterAKill(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{Hosted: ptr(client.HostedKubernetes)})
	m := newMachine(t, s, 1, token)
	w := newWire(t, s)
	m.url = w.url()
	m.joins()
	before := s.node(t)
	if before.Trust != client.TrustPlatform {
		t.Fatalf("trust %s", before.Trust)
	}
	_, err := s.admin.Pools.Update(t.Context(), client.PoolsUpdateInput{
		TenantID: platform, PoolID: lab, Policy: client.PoolsUpdateInputPolicy{Kubernetes: &client.PoolsUpdateInputPolicyKubernetes{PlatformOperated: ptr(false)}},
	})
	must(t, err)
	key := m.text("key.pem")
	w.cut.Store(true)
	p := m.run(setting{}) // it reports, and is told to renew now
	eventually(t, "an answer is lost", func() bool { return w.lost.Load() > 0 })
	p.signal(t, syscall.SIGKILL)
	p.exit(t)
	if m.text("key.pem") != key || m.text("renew-key.pem") == "" {
		t.Error("the old key is not in its place")
	}
	issued := *s.node(t).CertificateSerial
	w.cut.Store(false)
	p = m.run(setting{})
	p.await(t, p.stderr, `the server has issued a certificate" .* replayed=true`)
	m.reported()
	status, well := m.status()
	node := s.node(t)
	if !well || status.Trust != "tenant-controlled" || node.ID != before.ID || *node.CertificateSerial != issued || status.Serial != issued || issued == *before.CertificateSerial {
		t.Errorf("status %+v, node %+v, issued %s", status, node, issued)
	}
	if m.text("key.pem") == key || m.text("renew-key.pem") != "" {
		t.Error("the key is the old one")
	}
	m.stops(p)
}
