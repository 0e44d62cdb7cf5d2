package main

// maxNesting is the deepest level of an input that an object or array can stand
// on. Values that do not belong there are nested, too, and still no deeper than
// decoders read.
const maxNesting = maxDepth - 4

// inputs checks one object of an input and what is inside it. The object stands
// on a level of nesting, of which the body is the first.
func (c *checker) inputs(at position, what string, fields []*field, level int) {
	const most = 64
	if len(fields) > most {
		c.wrong.add(at, "%s has %d fields, and one object can have %d", what, len(fields), most)
	}
	if level > maxNesting {
		c.wrong.add(at, "%s nests deeper than %d levels", what, maxNesting)
		return
	}
	for _, f := range fields {
		kind := f.kind
		if kind == kindArray {
			kind = f.element
			if kind != kindString && kind != kindInteger && kind != kindEnum && kind != kindObject {
				c.wrong.add(f.typeAt, "an input cannot have an array of %ss", kind)
				continue
			}
			if f.limit.maxItems == 0 {
				c.wrong.add(f.at, "the array %s has no limit; add \"at most N items\"", f.path)
			}
		}
		switch kind {
		case kindTime, kindRecord:
			c.wrong.add(f.typeAt, "an input cannot have the type %s", kind)
		case kindObject:
			if len(f.fields) == 0 {
				c.wrong.add(f.at, "the object %s has no fields; add rows %s.…", f.path, f.path)
			}
			inside := level + 1
			if f.kind == kindArray {
				inside++
			}
			c.inputs(f.at, "the object "+f.path, f.fields, inside)
		case kindInteger:
			if !f.limit.hasRange {
				c.wrong.add(f.at, "the integer %s has no range; add \"A-B\"", f.path)
			}
		case kindString:
			if f.limit.maxChars == 0 {
				c.wrong.add(f.at, "the string %s has no length limit; add \"at most N characters\"", f.path)
			}
		}
		if f.required && f.limit.hasDefault {
			c.wrong.add(f.at, "the field %s is required, so its default is never used; drop one", f.path)
		}
	}
}

// outputs checks that what is in one answer only can be given up: the record
// beside it says by its id what to revoke.
func (c *checker) outputs(m *method) {
	c.onceOnTop(m.output)
	for _, f := range m.output {
		if !f.once {
			continue
		}
		if _, ok := find(m.group.methods, func(o *method) bool { return o.name == "revoke" }); !ok || m.retry != "key" {
			c.wrong.add(f.at, "%s is in one answer only, so %s must be retried by key and the group must have a method revoke", f.path, m.name)
		}
		if made := m.output[0]; made.kind != kindRecord || !made.required || !hasID(made.record) {
			c.wrong.add(f.at, "%s is in one answer only, so the output must begin with a record that is always there and has a string id", f.path)
		}
	}
}

func hasID(r *record) bool {
	id := fieldNamed(r.fields, "id")
	return id != nil && id.kind == kindString && id.required
}

// onceOnTop refuses "once" inside an object.
func (c *checker) onceOnTop(fields []*field) {
	for _, f := range fields {
		walk(f.fields, func(inner *field) { c.notOnce(inner) })
	}
}

func (c *checker) notOnce(f *field) {
	if f.once {
		c.wrong.add(f.at, "once is for the fields of an output; write yes, or leave the cell empty")
	}
}

// record refuses a record that can never be whole.
func (c *checker) record(r *record) {
	walk(r.fields, c.notOnce)
	if alwaysHolds(r.fields, r, map[*record]bool{}) {
		c.wrong.add(r.at, "the record %s always holds another of its kind; make the field optional, or an array", r.name)
	}
}

// alwaysHolds reports whether one who fills in what is always there meets a record.
func alwaysHolds(fields []*field, r *record, seen map[*record]bool) bool {
	for _, f := range fields {
		if !f.required || f.record != nil && (f.kind != kindRecord || seen[f.record]) {
			continue
		}
		if f.record == r {
			return true
		}
		if f.record != nil {
			seen[f.record] = true
		}
		if alwaysHolds(objectFields(f), r, seen) {
			return true
		}
	}
	return false
}

// event refuses data that must not leave in an event.
func (c *checker) event(e *event) {
	seen := map[*record]bool{}
	var visit func(f *field)
	visit = func(f *field) {
		if f.limit.secret {
			c.wrong.add(f.at, "the event %s would publish the secret %s", e.name, f.path)
		}
		if f.record != nil && !seen[f.record] {
			seen[f.record] = true
			walk(f.record.fields, visit)
		}
	}
	walk(e.fields, visit)
	walk(e.fields, c.notOnce)
}
