package engine

import "slices"

// queue is a first-in, first-out list that also takes back at its front.
type queue struct {
	all  []*Request
	head int
}

func (q *queue) len() int            { return len(q.all) - q.head }
func (q *queue) front() *Request     { return q.all[q.head] }
func (q *queue) items() []*Request   { return q.all[q.head:] }
func (q *queue) pushBack(r *Request) { q.all = append(q.all, r) }

func (q *queue) popFront() {
	q.all[q.head] = nil
	q.head++
	if q.head == len(q.all) {
		q.all, q.head = q.all[:0], 0
	} else if q.head > 64 && q.head > len(q.all)/2 {
		q.all, q.head = slices.Delete(q.all, 0, q.head), 0
	}
}

func (q *queue) pushFront(r *Request) {
	if q.head == 0 {
		q.all = slices.Insert(q.all, 0, r)
		return
	}
	q.head--
	q.all[q.head] = r
}

func (q *queue) remove(r *Request) bool {
	i := slices.Index(q.items(), r)
	if i < 0 {
		return false
	}
	q.all = slices.Delete(q.all, q.head+i, q.head+i+1)
	return true
}
