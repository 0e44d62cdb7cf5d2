package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

const (
	idleWait        = 5 * time.Second
	idleBound       = 60 // MB
	memoryRequests  = 100_000
	memoryEarly     = memoryRequests / 10
	memoryCallers   = 16
	memoryListLimit = 20
)

// memoryGoal: what bcserver holds resident on SQLite, at rest and under a mix of
// calls: of ten, four are lists, four are creates that are refused, two are creates.
func memoryGoal(ctx context.Context, l *lab) ([]line, error) {
	dir, err := l.folder("memory")
	if err != nil {
		return nil, err
	}
	p, err := l.serve(ctx, "sqlite:"+filepath.Join(dir, "bench.db"))
	if err != nil {
		return nil, err
	}
	defer p.stop()
	time.Sleep(idleWait)
	idle, err := p.resident()
	if err != nil {
		return nil, err
	}
	if err := p.makePool(); err != nil {
		return nil, err
	}
	var made atomic.Int64
	began := time.Now()
	if err := mixedLoad(ctx, p, &made, memoryEarly); err != nil {
		return nil, err
	}
	early, err := p.resident()
	if err != nil {
		return nil, err
	}
	if err := mixedLoad(ctx, p, &made, memoryRequests); err != nil {
		return nil, err
	}
	late, err := p.resident()
	if err != nil {
		return nil, err
	}
	return []line{
		bounded("idle, against 60 MB", megabytes, idle, idleBound, atMost("1", 1)),
		bounded("after 100,000 requests, against after 10,000", megabytes, late, early, atMost("1.3", 1.3)).
			withNote("%.0f requests a second with %d callers", memoryRequests/time.Since(began).Seconds(), memoryCallers),
	}, nil
}

// mixedLoad makes calls until they are as many as upTo.
func mixedLoad(ctx context.Context, p *program, made *atomic.Int64, upTo int64) error {
	list := fmt.Sprintf(`{"tenantId":%q,"poolId":%q,"limit":%d}`, tenant, pool, memoryListLimit)
	refused := strings.Replace(tokenBody("refused"), `"maxUses":8`, `"maxUses":0`, 1)
	return together(memoryCallers, func() error {
		c, err := p.dial()
		if err != nil {
			return err
		}
		defer c.close()
		for ctx.Err() == nil {
			n := made.Add(1)
			if n > upTo {
				made.Add(-1)
				return nil
			}
			switch n % 10 {
			case 0, 5:
				err = c.expect(200, createPath, tokenBody(fmt.Sprintf("memory-%d", n)))
			case 1, 3, 6, 8:
				err = c.expect(200, listPath, list)
			default:
				err = c.expect(400, createPath, refused)
			}
			if err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}
