package strictjson

// Optional is a field that may be absent. Set tells an explicit zero value from
// an absent one; Value is the zero value while Set is false.
type Optional[T any] struct {
	Value T
	Set   bool
}

// Some returns an Optional that holds v.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }
