; No fence is given out twice, and fences grow in the order of holding (rules 6.2 to 6.4), by induction, for any number
; of nodes and attempts, and whatever is lost, late or reordered.
;
; Two attempts that are won have a node in common where both are settled (exclusion.smt2: quorums meet). So this is
; about one node and two attempts, a and b: where it has settled both, their fences differ. If a was won before b began,
; a is settled here before b begins, and the fence of b is greater. Other attempts do here what these do.
;
; The rule is in src/algorithm/fence.rs (`Agreement`), and what a node does in src/protocol/lua/fence_key.lua and
; fenced.lua. A node forgets nothing. Nothing is about time: a key is freed at any moment. Messages to calls
; that wait make a call ask, which it does here at any moment (messages.smt2).

(declare-datatype Part (
  (nothing)
  (greater-than-before) ; `acquire`: the fence is greater than the one before
  (is-asked-once)       ; requests.rs: an attempt is not asked again, and no reply counts after its replies are counted
  (token-is-compared)   ; `raise`: the key has the token of the attempt
  (only-rises)          ; `raise`: the fence does not fall
  (greatest)            ; `Agreement`: m is the greatest of the replies that are counted
  (m-alone)             ; `Agreement`: a reply settles a node if it is m, not any reply: the plain maximum is no rule
  (counted-alone)       ; `Agreement`: only a node that has replied is raised
  (in-time)             ; attempts.rs: an acknowledgement counts for no attempt that is over
))

(declare-const without Part)
(define-fun has ((part Part)) Bool (distinct part without))

(declare-datatype Owner ((free) (a) (b) (other)))

; What an attempt has here.
(declare-datatype Attempt ((attempt
  (has-begun Bool)
  (was-run Bool) (fence Int)            ; the node has run its acquisition, and granted this
  (is-counted Bool)                     ; the attempt has counted that reply
  (has-m Bool) (m Int)                  ; it has counted its replies, of which this is the greatest
  (is-acked Bool)                       ; the node has acknowledged that it was raised to that
  (is-over Bool))))                     ; it is won or lost: what it acquires now is a repair

(declare-datatype Node ((node
  (last Int) (owner Owner)
  (of-a Attempt) (of-b Attempt)
  (first Owner)                         ; which of the two was granted first; free if neither was
  (is-later Bool))))                    ; b has begun when a was settled

(define-fun is-settled ((x Attempt)) Bool
  (and (has-m x)
       (or (and (is-counted x) (or (= (fence x) (m x)) (not (has m-alone))))
           (is-acked x))))

(define-fun one ((s Node) (who Owner)) Attempt (ite (= who a) (of-a s) (of-b s)))
(define-fun rival ((who Owner)) Owner (ite (= who a) b a))
(define-fun changed ((s Node) (l Int) (o Owner) (who Owner) (x Attempt)) Node
  (node l o (ite (= who a) x (of-a s)) (ite (= who b) x (of-b s)) (first s) (is-later s)))

; ---- The steps, from s to t, of the attempt `who`: a or b

; code: src/api/lock/attempts.rs attempt
(define-fun begins-one ((s Node) (t Node) (who Owner)) Bool
  (and (not (has-begun (one s who)))
       (let ((u (changed s (last s) (owner s) who (attempt true false 0 false false 0 false false))))
         (= t (node (last u) (owner u) (of-a u) (of-b u) (first u)
                    (ite (= who b) (is-settled (of-a s)) (is-later s)))))))

; `floor` and the clocks are in what the fence is beyond the last one. A reply may be lost, or not be counted. That the
; key is free is required by the lock, and not here.
; code: src/protocol/lua/fence_key.lua acquire
(define-fun acquires ((s Node) (t Node) (who Owner) (given Int) (counted Bool)) Bool
  (let ((x (one s who)))
    (and (has-begun x) (not (is-over x))
         (=> (has is-asked-once) (and (not (was-run x)) (=> (has-m x) (not counted))))
         (ite (has greater-than-before) (< (last s) given) (<= (last s) given))
         (let ((u (changed s given who who
                     (attempt true true (ite (is-counted x) (fence x) given) (or counted (is-counted x))
                              (has-m x) (m x) (is-acked x) false))))
           (= t (node (last u) (owner u) (of-a u) (of-b u) (ite (= (first s) free) who (first s)) (is-later u)))))))

; The replies are counted. The greatest may be another node's.
; code: src/algorithm/fence.rs agreement
(define-fun counts ((s Node) (t Node) (who Owner) (given Int)) Bool
  (let ((x (one s who)))
    (and (has-begun x) (not (has-m x))
         (=> (and (has greatest) (is-counted x)) (<= (fence x) given))
         (= t (changed s (last s) (owner s) who
                (attempt true (was-run x) (fence x) (is-counted x) true given false (is-over x)))))))

; code: src/protocol/lua/fence_key.lua rewrite
; code: src/algorithm/fence.rs acknowledged
(define-fun is-raised ((s Node) (t Node) (who Owner)) Bool
  (let ((x (one s who)))
    (and (has-m x)
         (=> (has counted-alone) (is-counted x))
         (=> (has token-is-compared) (= (owner s) who))
         (= t (changed s (ite (and (has only-rises) (< (m x) (last s))) (last s) (m x)) (owner s) who
                (attempt true (was-run x) (fence x) (is-counted x) true (m x)
                         (or (is-acked x) (not (and (is-over x) (has in-time)))) (is-over x)))))))

; code: src/algorithm/acquire/mod.rs raised
(define-fun ends ((s Node) (t Node) (who Owner)) Bool
  (let ((x (one s who)))
    (and (has-begun x)
         (= t (changed s (last s) (owner s) who
                (attempt true (was-run x) (fence x) (is-counted x) (has-m x) (m x) (is-acked x) true))))))

; A lock that is held is set again where the key is missing.
; code: src/engine/nodes/requests.rs repair
(define-fun is-repaired ((s Node) (t Node) (who Owner) (given Int)) Bool
  (and (is-over (one s who)) (= (owner s) free) (<= (last s) given)
       (= t (changed s given who who (one s who)))))

; By a release, by the end of the lease on the clock of the node, or by hand.
; code: src/protocol/lua/fence_key.lua release
(define-fun is-freed ((s Node) (t Node)) Bool
  (= t (node (last s) free (of-a s) (of-b s) (first s) (is-later s))))

; code: src/protocol/lua/fence_key.lua acquire
(define-fun other-acquires ((s Node) (t Node) (given Int)) Bool
  (and (= (owner s) free) (< (last s) given)
       (= t (node given other (of-a s) (of-b s) (first s) (is-later s)))))

; code: src/protocol/lua/fence_key.lua rewrite
(define-fun other-is-raised ((s Node) (t Node) (given Int)) Bool
  (and (= (owner s) other) (=> (has only-rises) (<= (last s) given))
       (= t (node given other (of-a s) (of-b s) (first s) (is-later s)))))

; ---- The invariant

(define-fun begins ((s Node)) Bool
  (let ((nothing-yet (attempt false false 0 false false 0 false false)))
    (= s (node (last s) free nothing-yet nothing-yet free false))))

(define-fun is-sound ((s Node) (who Owner)) Bool
  (let ((x (one s who)))
    (and (=> (or (was-run x) (has-m x) (is-over x)) (has-begun x))
         (=> (was-run x) (and (<= (fence x) (last s)) (distinct (first s) free)))
         (=> (is-counted x) (was-run x))
         (=> (and (is-counted x) (has-m x)) (<= (fence x) (m x)))
         (=> (is-acked x) (and (has-m x) (is-counted x) (<= (m x) (last s))))
         (=> (= (owner s) who) (or (was-run x) (is-over x)))
         ; The one that came first. Its token is back only by a repair.
         (=> (= (first s) who) (was-run x))
         (=> (and (= (first s) who) (was-run (one s (rival who))))
             (and (< (fence x) (fence (one s (rival who))))
                  (=> (is-settled x) (< (m x) (fence (one s (rival who)))))
                  (=> (= (owner s) who) (is-over x)))))))

(define-fun holds ((s Node)) Bool
  (and (is-sound s a) (is-sound s b) (distinct (first s) other)
       (=> (is-later s)
           (and (is-settled (of-a s)) (has-begun (of-b s)) (distinct (first s) b)))))

; What must not be: both have the same fence, or the later one the smaller.
(define-fun is-wrong ((s Node)) Bool
  (and (is-settled (of-a s)) (is-settled (of-b s))
       (or (= (m (of-a s)) (m (of-b s)))
           (and (is-later s) (<= (m (of-b s)) (m (of-a s)))))))

; ---- The proof

(declare-const s Node)
(declare-const t Node)
(declare-const who Owner)
(declare-const given Int)
(declare-const counted Bool)
(assert (or (= who a) (= who b)))

(push)
(assert (= without nothing))

(echo "It holds in the beginning:")
(push) (assert (begins s)) (assert (not (holds s))) (check-sat) (pop) ; expect: unsat

(echo "Where it holds, no fence is given out twice, and the later one is the greater:")
(push) (assert (holds s)) (assert (is-wrong s)) (check-sat) (pop) ; expect: unsat

(echo "It does not exclude that both are settled:")
(push) (assert (holds s)) (assert (is-settled (of-a s))) (assert (is-settled (of-b s))) (check-sat) (pop) ; expect: sat

; Each step is possible where it holds, and does not end it.
(assert (holds s))
(echo "begins-one:")
(push) (assert (begins-one s t who)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "acquires:")
(push) (assert (acquires s t who given counted)) (check-sat) (assert (not (holds t))) (check-sat) (pop)
; expect: sat unsat
(echo "counts:")
(push) (assert (counts s t who given)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "is-raised:")
(push) (assert (is-raised s t who)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "ends:")
(push) (assert (ends s t who)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "is-repaired:")
(push) (assert (is-repaired s t who given)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "is-freed:")
(push) (assert (is-freed s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "other-acquires:")
(push) (assert (other-acquires s t given)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "other-is-raised:")
(push) (assert (other-is-raised s t given)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(pop)

; ---- Without a part of it: a trace from the beginning to what must not be, which is none with that part

(declare-const s0 Node) (declare-const s1 Node) (declare-const s2 Node) (declare-const s3 Node) (declare-const s4 Node)
(declare-const s5 Node) (declare-const s6 Node) (declare-const s7 Node) (declare-const s8 Node) (declare-const s9 Node)
(declare-const s10 Node) (declare-const s11 Node)
(assert (begins s0))

(echo "without greater-than-before:")
(push)
(assert (begins-one s0 s1 a)) (assert (begins-one s1 s2 b)) (assert (acquires s2 s3 a 5 true))
(assert (counts s3 s4 a 5)) (assert (is-freed s4 s5)) (assert (acquires s5 s6 b 5 true)) (assert (counts s6 s7 b 5))
(assert (is-wrong s7))
(push) (assert (= without greater-than-before)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without is-asked-once:")
(push)
(assert (begins-one s0 s1 a)) (assert (begins-one s1 s2 b)) (assert (acquires s2 s3 a 1 true))
(assert (counts s3 s4 a 3)) (assert (is-freed s4 s5)) (assert (acquires s5 s6 b 3 true)) (assert (counts s6 s7 b 3))
(assert (is-freed s7 s8)) (assert (acquires s8 s9 a 4 true)) (assert (is-raised s9 s10 a))
(assert (is-wrong s10))
(push) (assert (= without is-asked-once)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without token-is-compared:")
(push)
(assert (begins-one s0 s1 a)) (assert (begins-one s1 s2 b)) (assert (acquires s2 s3 a 1 true))
(assert (counts s3 s4 a 2)) (assert (is-freed s4 s5)) (assert (acquires s5 s6 b 2 true)) (assert (counts s6 s7 b 2))
(assert (is-raised s7 s8 a))
(assert (is-wrong s8))
(push) (assert (= without token-is-compared)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without only-rises:")
(push)
(assert (begins-one s0 s1 a)) (assert (begins-one s1 s2 b)) (assert (acquires s2 s3 a 5 true))
(assert (counts s3 s4 a 5)) (assert (is-freed s4 s5)) (assert (other-acquires s5 s6 6))
(assert (other-is-raised s6 s7 4)) (assert (is-freed s7 s8)) (assert (acquires s8 s9 b 5 true))
(assert (counts s9 s10 b 5))
(assert (is-wrong s10))
(push) (assert (= without only-rises)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without greatest:")
(push)
(assert (begins-one s0 s1 a)) (assert (begins-one s1 s2 b)) (assert (acquires s2 s3 a 5 true))
(assert (counts s3 s4 a 5)) (assert (is-freed s4 s5)) (assert (acquires s5 s6 b 6 true)) (assert (counts s6 s7 b 5))
(assert (is-raised s7 s8 b))
(assert (is-wrong s8))
(push) (assert (= without greatest)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without m-alone:")
(push)
(assert (begins-one s0 s1 a)) (assert (begins-one s1 s2 b)) (assert (acquires s2 s3 a 1 true))
(assert (counts s3 s4 a 2)) (assert (is-freed s4 s5)) (assert (acquires s5 s6 b 2 true)) (assert (counts s6 s7 b 2))
(assert (is-wrong s7))
(push) (assert (= without m-alone)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without counted-alone:")
(push)
(assert (begins-one s0 s1 a)) (assert (begins-one s1 s2 b)) (assert (acquires s2 s3 a 5 true))
(assert (counts s3 s4 a 5)) (assert (is-freed s4 s5)) (assert (acquires s5 s6 b 6 false)) (assert (counts s6 s7 b 5))
(assert (is-raised s7 s8 b))
(assert (is-wrong s8))
(push) (assert (= without counted-alone)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without in-time:")
(push)
(assert (begins-one s0 s1 a)) (assert (begins-one s1 s2 b)) (assert (acquires s2 s3 a 1 true))
(assert (counts s3 s4 a 2)) (assert (ends s4 s5 a)) (assert (is-freed s5 s6)) (assert (acquires s6 s7 b 2 true))
(assert (counts s7 s8 b 2)) (assert (is-freed s8 s9)) (assert (is-repaired s9 s10 a 2)) (assert (is-raised s10 s11 a))
(assert (is-wrong s11))
(push) (assert (= without in-time)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)
