package main_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/gen/client"
)

// TestNJ_3_AFullDisk holds that a disk which is full at any point costs
// nothing: the same join is made again when there is room.
func TestNJ_3_AFullDisk(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const script = `mount -t tmpfs -o size="$1",mode=0700 bcd "$2" || exit 77
room=$2; shift 2
"$@"; echo "first: $?"
mount -o remount,size=1m "$room" || exit 77
"$@"; echo "second: $?"
ls "$room"`
	inside := &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	afterwards := 0 // how often the server had answered, and there was no room for it
	for n := range 7 {
		id, token := s.mint(t, client.JoinTokensCreateInput{IdempotencyKey: "key" + strconv.Itoa(n)})
		m := newMachine(t, s, n, token)
		must(t, os.Mkdir(m.state, 0o700))
		args := append([]string{"-c", script, "sh", strconv.Itoa(4*n+4) + "k", m.state, bcd}, m.args("join", "--timeout", "0")...)
		p := launch(t, "/bin/sh", setting{attr: inside}, args...)
		if p.exit(t) == 77 {
			t.Skip("a tmpfs cannot be mounted here")
		}
		out, said := p.stdout.String(), p.stderr.String()
		m.said = append(m.said, out, said)
		if !strings.Contains(out, "second: 0") || s.uses(t, id) != 1 {
			t.Errorf("%d KiB: %s\n%s", 4*n+4, out, said)
		}
		if strings.Contains(out, "first: 1") {
			if !strings.Contains(said, "no space left on device") {
				t.Errorf("%d KiB: %s", 4*n+4, said)
			}
			if strings.Contains(said, "has issued a certificate for nd_") {
				afterwards++
			}
		}
	}
	if nodes := len(s.nodes(t)); nodes != 7 || afterwards == 0 {
		t.Errorf("%d nodes; %d answers had no room", nodes, afterwards)
	}
}
