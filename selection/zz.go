package selection

func NewRistrettoStore(b int64) (Store, error) { return NewMapStore(), nil }
