; A writer is alone (rules 14.1 to 14.3), by induction, for any number of nodes, readers and writers, and whatever is
; lost, late, sent twice or reordered.
;
; Two leases that are valid have a node in common (exclusion.smt2: quorums meet) that has promised both, and a lease
; ends before the promise does, by the allowance for drift. So this is about one node and two programs, p and q: while it
; keeps a promise to p as a writer, it keeps none to q. All other programs do what these do.
;
; What a node does is in src/protocol/lua/read_write.lua. A node forgets nothing: wait.smt2 is about one that does.
; messages.smt2 is about messages and queues. They let a node refuse more, or a call ask, and `acquires` is possible here
; at any moment.

(declare-datatype Part (
  (nothing)
  (writer-waits-for-all)   ; refused_for('w'): no write beside any other hold
  (reader-waits-for-write) ; refused_for('r'): no read beside a writer's hold
  (not-shortened)          ; hold: an extension does not end a hold sooner
  (not-revived)            ; extend: a hold that has ended is not set again
  (not-promoted)           ; extend: a reader does not become a writer
  (own-token)              ; release: only the hold of the token
  (clock-goes-on)          ; the clock of the node is not set back
))

(declare-const without Part)
(define-fun has ((part Part)) Bool (distinct part without))

(declare-sort Token 0)
(declare-const p Token)
(declare-const q Token)
(assert (distinct p q))

(declare-datatype Node ((node
  (now Real)
  (writes Bool)                         ; the mode of the key; of no meaning where no hold is left
  (ends (Array Token Real))             ; until when each hold lasts; before `now`, there is none
  (to-p Real)                           ; until when p is promised that it is alone
  (to-q Real) (q-writes Bool))))        ; until when q is promised to read, or to be alone

(define-fun is-held ((s Node) (k Token)) Bool (<= (now s) (select (ends s) k)))
(define-fun is-free ((s Node)) Bool (forall ((k Token)) (not (is-held s k))))
(define-fun is-alone ((s Node) (k Token)) Bool (forall ((l Token)) (=> (is-held s l) (= l k))))

; What the program with token k is promised when the node has stored this.
(define-fun promised ((s Node) (t Node) (k Token) (write Bool) (until Real)) Bool
  (and (= (to-p t) (ite (= k p) (ite write until (- 1.0)) (to-p s)))
       (= (to-q t) (ite (= k q) until (to-q s)))
       (= (q-writes t) (ite (= k q) write (q-writes s)))))

; `hold`: as a writer or a reader, for so long from now on. `keep` may end it sooner.
(define-fun stores ((s Node) (t Node) (k Token) (write Bool) (ttl Real) (keeps Bool)) Bool
  (let ((until (+ (now s) ttl)) (old (select (ends s) k)))
    (let ((end (ite (and (has not-shortened) (not keeps) (is-held s k) (< until old)) old until)))
      (and (< 0.0 ttl) (= (now t) (now s)) (= (writes t) write) (= (ends t) (store (ends s) k end))
           ; A program that has kept its hold for some time only does not rely on it any more. One that was promised
           ; more, earlier, still relies on that.
           (promised s t k write
             (ite keeps (- 1.0)
               (let ((before (ite (= k p) (to-p s) (to-q s))))
                 (ite (and (<= (now s) before) (< until before)) before until))))))))

; ---- The steps, from s to t

; code: src/protocol/lua/read_write.lua refused_for
(define-fun acquires ((s Node) (t Node) (k Token) (write Bool) (ttl Real)) Bool
  (and (=> (and write (has writer-waits-for-all)) (or (is-free s) (and (is-held s k) (writes s))))
       (=> (and (not write) (has reader-waits-for-write)) (or (is-held s k) (is-free s) (not (writes s))))
       (stores s t k write ttl false)))

; code: src/protocol/lua/read_write.lua hold
(define-fun extends ((s Node) (t Node) (k Token) (write Bool) (ttl Real) (keeps Bool)) Bool
  (and (=> (has not-revived) (is-held s k))
       (=> (and write (has not-promoted)) (writes s))
       (stores s t k write ttl keeps)))

; The hold of token l, asked with token k.
; code: src/protocol/lua/read_write.lua store
(define-fun releases ((s Node) (t Node) (k Token) (l Token)) Bool
  (and (=> (has own-token) (= l k))
       (= (now t) (now s)) (= (writes t) (writes s)) (= (ends t) (store (ends s) l (- 1.0)))
       (promised s t k false (- 1.0))))

; environment: the clock
(define-fun time-passes ((s Node) (t Node)) Bool
  (and (=> (has clock-goes-on) (<= (now s) (now t))) (<= 0.0 (now t))
       (= t (node (now t) (writes s) (ends s) (to-p s) (to-q s) (q-writes s)))))

; ---- The invariant

(define-fun begins ((s Node)) Bool
  (and (= (now s) 0.0) (is-free s) (= (to-p s) (- 1.0)) (= (to-q s) (- 1.0))))

(define-fun holds ((s Node)) Bool
  (and (<= 0.0 (now s))
       (=> (writes s) (forall ((k Token) (l Token)) (=> (and (is-held s k) (is-held s l)) (= k l))))
       (=> (<= (now s) (to-p s)) (and (writes s) (<= (to-p s) (select (ends s) p))))
       (=> (<= (now s) (to-q s)) (and (=> (q-writes s) (writes s)) (<= (to-q s) (select (ends s) q))))))

; What must not be: p is promised to be alone, and q that it has the lock.
(define-fun is-wrong ((s Node)) Bool (and (<= (now s) (to-p s)) (<= (now s) (to-q s))))

; ---- The proof

(declare-const s Node)
(declare-const t Node)
(declare-const k Token)
(declare-const l Token)
(declare-const write Bool)
(declare-const keeps Bool)
(declare-const ttl Real)

(push)
(assert (= without nothing))

(echo "It holds in the beginning:")
(push) (assert (begins s)) (assert (not (holds s))) (check-sat) (pop) ; expect: unsat

(echo "Where it holds, a writer is alone:")
(push) (assert (holds s)) (assert (is-wrong s)) (check-sat) (pop) ; expect: unsat

; Each step is possible where it holds, and does not end it.
(assert (holds s))
(echo "acquires:")
(push) (assert (acquires s t k write ttl)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "extends:")
(push) (assert (extends s t k write ttl keeps)) (check-sat) (assert (not (holds t))) (check-sat) (pop)
; expect: sat unsat
(echo "releases:")
(push) (assert (releases s t k l)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "time-passes:")
(push) (assert (time-passes s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(pop)

; ---- Without a part of it: a trace from the beginning to what must not be, which is none with that part

(declare-const s0 Node) (declare-const s1 Node) (declare-const s2 Node) (declare-const s3 Node) (declare-const s4 Node)
(declare-const s5 Node)
(assert (begins s0))

(echo "without writer-waits-for-all:")
(push)
(assert (acquires s0 s1 q false 5.0)) (assert (acquires s1 s2 p true 5.0))
(assert (is-wrong s2))
(push) (assert (= without writer-waits-for-all)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without reader-waits-for-write:")
(push)
(assert (acquires s0 s1 p true 5.0)) (assert (acquires s1 s2 q false 5.0))
(assert (is-wrong s2))
(push) (assert (= without reader-waits-for-write)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without not-shortened:")
(push)
(assert (acquires s0 s1 p true 10.0)) (assert (extends s1 s2 p true 1.0 false))
(assert (and (time-passes s2 s3) (= (now s3) 2.0))) (assert (acquires s3 s4 q false 5.0))
(assert (is-wrong s4))
(push) (assert (= without not-shortened)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without not-revived:")
(push)
(assert (acquires s0 s1 p true 5.0)) (assert (and (time-passes s1 s2) (= (now s2) 6.0)))
(assert (acquires s2 s3 q true 10.0)) (assert (extends s3 s4 p true 5.0 false))
(assert (is-wrong s4))
(push) (assert (= without not-revived)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without not-promoted:")
(push)
(assert (acquires s0 s1 q false 10.0)) (assert (acquires s1 s2 p false 10.0))
(assert (extends s2 s3 p true 5.0 false))
(assert (is-wrong s3))
(push) (assert (= without not-promoted)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without own-token:")
(push)
(assert (acquires s0 s1 p true 10.0)) (assert (releases s1 s2 q p)) (assert (acquires s2 s3 q false 5.0))
(assert (is-wrong s3))
(push) (assert (= without own-token)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without clock-goes-on:")
(push)
(assert (and (time-passes s0 s1) (= (now s1) 10.0))) (assert (acquires s1 s2 p true 5.0))
(assert (and (time-passes s2 s3) (= (now s3) 16.0))) (assert (acquires s3 s4 q true 5.0))
(assert (and (time-passes s4 s5) (= (now s5) 12.0)))
(assert (is-wrong s5))
(push) (assert (= without clock-goes-on)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)
