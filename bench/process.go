package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// resident is the resident memory of the program in MB, the median over a second.
func (p *program) resident() (float64, error) {
	var seen []float64
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		text := field(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid), "VmRSS")
		kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(text, " kB"), 64)
		if err != nil {
			return 0, fmt.Errorf("resident memory: %w", err)
		}
		seen = append(seen, kilobytes/1024)
	}
	return median(seen), nil
}

// worked is the processor time that the program has spent so far.
func (p *program) worked() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("processor time: %w", errUnexpected)
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	const tick = 10 * time.Millisecond // of USER_HZ, which Linux fixes at 100
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// ownWork is the processor time that bench itself has spent so far.
func ownWork() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
