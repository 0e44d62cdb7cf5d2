package main

import "strings"

// createBody is a joinTokens.create with every field, 340 bytes long.
const createBody = `{"tenantId":"tenant-7.example","poolId":"pool-berlin-1","maxUses":8,"ttlSeconds":3600,` +
	`"expect":{"productUuid":"4c4c4544-0051-3010-8052-b4c04f4d3132","serial":"CN-7792/B4:Q3+1",` +
	`"mac":"a0:36:9f:7b:0c:1d","gpuUuid":"GPU-8a56a4bc-ef2d-4d0e-b2a5-0f4c7d6e9a01"},` +
	`"allowReclaim":true,"hosted":"kubernetes","idempotencyKey":"rack-7/slot=42~try:T1+"}`

// A refusal is createBody with something wrong in it.
type refusal struct{ name, body string }

var refusals = []refusal{
	{"a wrong pattern", strings.Replace(createBody, ":7b:", ":7g:", 1)},
	{"an unknown field", strings.Replace(createBody, `"hosted"`, `"hosting"`, 1)},
	{"a syntax error at the end", strings.TrimSuffix(createBody, "}") + "]"},
}
