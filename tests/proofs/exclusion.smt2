; From one node to all: two leases of two programs are not valid at once, however many nodes and programs there are.
;
; A lease is valid as long as one of its rounds is, the acquisition or an extension. So this is about any two rounds of
; two programs. What is taken from wait.smt2 is the claim about a node that granted both.

(declare-datatype Part (
  (nothing)
  (quorums-meet)        ; two quorums have a node in common
  (nodes-wait)          ; wait.smt2: a grant that comes second is counted when the first one is relied on no more
  (counts-before-won)   ; a round is won when its grants have been counted
))

(declare-const without Part)
(define-fun has ((part Part)) Bool (distinct part without))

; ---- Quorums meet: of n nodes, each has n/2 + 1, by integer division; `both` is how many they have in common.

(declare-const n Int)
(declare-const both Int)
; code: src/algorithm/vote/mod.rs quorum
(define-fun quorum () Int (+ (div n 2) 1))

(echo "Two quorums meet:")
(push) (assert (<= 1 n)) (assert (<= (- (* 2 quorum) both) n)) (assert (= both 0)) (check-sat) (pop) ; expect: unsat
(echo "two halves need not:")
(push) (assert (<= 1 n)) (assert (<= (- (* 2 (div n 2)) both) n)) (assert (= both 0)) (check-sat) (pop) ; expect: sat

; ---- Nodes, and the rounds of the lock

(declare-sort Node 0)
(declare-sort Round 0)
(declare-sort Program 0)
(declare-datatype Lease ((lease (won Real) (until Real))))

(declare-fun program-of (Round) Program)
(declare-fun lease-of (Round) Lease)
(declare-fun grants (Node Round) Bool)            ; the node is one of the quorum that has won the round
(declare-fun granted (Node Round) Real)           ; when it has granted it
(declare-fun counted (Node Round) Real)           ; when the program has counted that
(declare-fun common (Round Round) Node)

(define-fun is-valid ((r Round) (now Real)) Bool (and (<= (won (lease-of r)) now) (< now (until (lease-of r)))))

; code: src/algorithm/vote/mod.rs acquisition
(define-fun is-won-by ((grants Int)) Bool (<= quorum grants))
; code: src/algorithm/quarantine.rs of_attempt
(define-fun waits ((m Node) (a Round) (b Round)) Bool
  (=> (and (distinct (program-of a) (program-of b)) (grants m a) (grants m b) (<= (granted m a) (granted m b)))
      (<= (until (lease-of a)) (counted m b))))
; code: src/algorithm/acquire/mod.rs attempted
(define-fun counts-first ((m Node) (a Round)) Bool
  (=> (grants m a) (<= (counted m a) (won (lease-of a)))))

(assert (=> (has quorums-meet)
  (forall ((a Round) (b Round)) (and (grants (common a b) a) (grants (common a b) b)))))
(assert (=> (has nodes-wait) (forall ((m Node) (a Round) (b Round)) (waits m a b))))
(assert (=> (has counts-before-won) (forall ((m Node) (a Round)) (counts-first m a))))

; ---- Two programs hold the lock

(declare-const a Round)
(declare-const b Round)
(declare-const now Real)
(assert (and (distinct (program-of a) (program-of b)) (is-valid a now) (is-valid b now)))

(echo "no two hold the lock:")
(push) (assert (= without nothing)) (check-sat) (pop) ; expect: unsat
(echo "without quorums-meet:")
(push) (assert (= without quorums-meet)) (check-sat) (pop) ; expect: sat
(echo "without nodes-wait:")
(push) (assert (= without nodes-wait)) (check-sat) (pop) ; expect: sat
(echo "without counts-before-won:")
(push) (assert (= without counts-before-won)) (check-sat) (pop) ; expect: sat
