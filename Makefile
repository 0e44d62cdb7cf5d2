# The two that matter to a new user are `make demo` and `make test`; see README.md.

GO ?= go
PG := .ci/with-postgres

.PHONY: help build generate check test verify demo run fuzz bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the binaries into bin/
	$(GO) build -trimpath -o bin/ ./cmd/...

generate: ## compile spec/ into gen/
	$(GO) generate ./...

check: ## what every commit must pass: generated files, format, vet, house rules
	$(GO) run ./tools/specc -spec spec -out gen -fsm fsm -check
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
		test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }
	$(GO) vet ./...
	cd bench && $(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) build ./...
	$(GO) test -count=1 .

test: ## the whole Go suite, on SQLite and on Postgres
	race=$$(.ci/race) && $(PG) $(GO) test $$race -timeout 30m ./...

verify: ## independent tools on the running server and its documents (npm, PyPI)
	.ci/verify

demo: build ## build, start a server, mint, list and revoke join tokens, join machines, and say what happened
	tools/demo bin

run: build ## keep a server up on embedded SQLite
	bin/bcserver serve

fuzz: ## every fuzz target for a minute
	tools/fuzz 60s

bench: ## one table of goals, ours against peers
	BC_PG_FSYNC=on $(PG) sh -c 'cd bench && $(GO) run .'

clean: ## remove what was built
	rm -rf bin
