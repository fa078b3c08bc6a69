; No more than k permits of a semaphore are valid at once (rules 4.13, 3.8 and 3.9), for any number of nodes, permits,
; programs and restarts, and in real time.
;
; A permit is the lock of one of k slots, and nothing is counted on the nodes. There are three parts. One node: two
; attempts, p and q, which any programs make for any slots, do not rely on its grant of one slot at once; by induction
; over what can change the node. All nodes: so no two permits of one slot are valid at once. All slots: so there are no
; more than k; by induction over k.
;
; All time is true time. What a node does is in src/protocol/lua/permit.lua. A node that has lost its keys has any keys,
; and wait.smt2 proves when it counts again: `waits` is what is taken from there.

(declare-datatype Part (
  (nothing)
  (free-before)         ; grant: a slot is taken where its key is not there
  (own-tokens)          ; attempts.rs: each attempt draws a token of its own
  (one-slot)            ; search.rs: the replies that an attempt counts are about the slot that it has asked for
  (outlives)            ; Ttl::new: a lease is shorter than the time to live, by the drift
  (begins-early)        ; Ttl::lease_from: a lease counts from before the first byte
  (lives-on)            ; extend.lua: only a key that is there is extended
  (own-token)           ; token_key.lua: a release deletes the key of its own token alone
  (gives-up-first)      ; a permit that is released is relied on no more
  (waits)               ; wait.smt2: after a loss, a node counts when the longest lease has passed
  (quorums-meet)        ; two quorums have a node in common
  (below-k)             ; search.rs: no slot but those of the semaphore is asked for
))

(declare-const without Part)
(define-fun has ((part Part)) Bool (distinct part without))

(declare-const k Int)
(declare-const longest Real)            ; the longest lease
(assert (< 0 longest))

; ---- One node

(declare-sort Token 0)
(declare-const no-token Token)
(declare-const p Token)
(declare-const q Token)
(assert (distinct no-token p q))

(declare-datatype Key ((key (owner Token) (ends Real))))

; What an attempt was granted: which slot it counts that for, when, until when its lease lasts, and from when on the
; grant counts.
(declare-datatype Grant ((no-grant) (grant (slot Int) (granted Real) (until Real) (counts Real))))

(declare-datatype Node ((node
  (now Real)
  (born Real)                           ; when it has lost its keys for the last time
  (keys (Array Int Key))                ; of the slots
  (to-p Grant)
  (to-q Grant))))

(define-fun is-there ((s Node) (i Int)) Bool
  (and (distinct (owner (select (keys s) i)) no-token) (< (now s) (ends (select (keys s) i)))))
(define-fun has-key ((s Node) (i Int) (who Token)) Bool (and (is-there s i) (= (owner (select (keys s) i)) who)))
(define-fun of ((s Node) (who Token)) Grant (ite (= who p) (to-p s) (ite (= who q) (to-q s) no-grant)))
(define-fun is-relied-on ((s Node) (g Grant)) Bool (and ((_ is grant) g) (< (now s) (until g))))

(define-fun promises ((s Node) (who Token) (ks (Array Int Key)) (g Grant)) Node
  (node (now s) (born s) ks (ite (= who p) g (to-p s)) (ite (= who q) g (to-q s))))

; The key of slot i is set, or lasts longer, for so long from now on, with this token; `who` has begun then, for a lease
; that lasts so long.
(define-fun stores ((s Node) (t Node) (who Token) (token Token) (i Int) (life Real) (begun Real) (lease Real)) Bool
  (let ((g (of t who)))
    (and (distinct token no-token)
         (=> (has own-tokens) (= token who))
         (< 0 life) (< 0 lease) (<= lease longest)
         (=> (has outlives) (<= lease life))
         (=> (has begins-early) (<= begun (now s)))
         (<= (+ begun lease) (+ (now s) longest))
         ; A round that is not won promises nothing new.
         (=> (and (or (= who p) (= who q)) (distinct g (of s who)))
             (and ((_ is grant) g)
                  (=> (has one-slot) (= (slot g) i))
                  (= (granted g) (now s)) (= (until g) (+ begun lease))
                  (<= (now s) (counts g))
                  (=> (has waits) (<= (+ (born s) longest) (counts g)))))
         (=> (and ((_ is grant) g) (= g (of s who)) (= (slot g) i)) (<= (until g) (+ (now s) life)))
         (= t (promises s who (store (keys s) i (key token (+ (now s) life))) g)))))

; ---- The steps, from s to t

; code: src/protocol/lua/permit.lua grant
; code: src/algorithm/lease.rs lease_from
(define-fun takes ((s Node) (t Node) (who Token) (token Token) (i Int) (life Real) (begun Real) (lease Real)) Bool
  (and (=> (has free-before) (or (not (is-there s i)) (has-key s i token)))
       (stores s t who token i life begun lease)))

; Of an extension. What was promised before is not relied on longer than the key lasts: it is extended for longer alone.
; code: src/protocol/lua/extend.lua PEXPIRE
(define-fun extends ((s Node) (t Node) (who Token) (i Int) (life Real) (begun Real) (lease Real)) Bool
  (and (=> (has lives-on) (has-key s i who))
       (stores s t who who i life begun lease)))

; code: src/api/held_lock/release.rs leave_watch
; code: src/algorithm/acquire/mod.rs poll
(define-fun gives-up ((s Node) (t Node) (who Token)) Bool
  (= t (promises s who (keys s) no-grant)))

; The key of `whose` is deleted, by a release or an undo with the token of `who`.
; code: src/protocol/lua/token_key.lua DEL
(define-fun releases ((s Node) (t Node) (who Token) (whose Token) (i Int)) Bool
  (and (= (owner (select (keys s) i)) whose)
       (=> (has own-token) (= who whose))
       (=> (has gives-up-first) (= (of s who) no-grant))
       (= t (node (now s) (born s) (store (keys s) i (key no-token (now s))) (to-p s) (to-q s)))))

; environment: the clock
(define-fun time-passes ((s Node) (t Node)) Bool
  (and (<= (now s) (now t)) (= t (node (now t) (born s) (keys s) (to-p s) (to-q s)))))

; environment: by a restart, a flush or a promotion; the keys are any
(define-fun loses ((s Node) (t Node)) Bool
  (= t (node (now s) (now s) (keys t) (to-p s) (to-q s))))

; ---- The invariant

; A node of which no lease can have been lost.
(define-fun begins ((s Node)) Bool
  (and (= (now s) 0.0) (<= (born s) (- longest)) (= (to-p s) no-grant) (= (to-q s) no-grant)
       (= (keys s) ((as const (Array Int Key)) (key no-token 0.0)))))

(define-fun is-kept ((s Node) (who Token)) Bool
  (let ((g (of s who)))
    (=> ((_ is grant) g)
        (and (<= (granted g) (now s)) (<= (until g) (+ (granted g) longest)) (<= (granted g) (counts g))
             (or (<= (until g) (now s)) (<= (granted g) (born s))
                 (and (has-key s (slot g) who) (<= (until g) (ends (select (keys s) (slot g))))))))))

(define-fun holds ((s Node)) Bool
  (let ((g (to-p s)) (h (to-q s)))
    (and (<= (born s) (now s)) (is-kept s p) (is-kept s q)
         (=> (and (is-relied-on s g) (is-relied-on s h) (= (slot g) (slot h)))
             (or (<= (until g) (counts h)) (<= (until h) (counts g)))))))

; What must not be: both count a grant of one slot, and rely on it.
(define-fun is-wrong ((s Node)) Bool
  (let ((g (to-p s)) (h (to-q s)))
    (and (is-relied-on s g) (is-relied-on s h) (= (slot g) (slot h)) (<= (counts g) (now s)) (<= (counts h) (now s)))))

; ---- The proof

(declare-const s Node)
(declare-const t Node)
(declare-const who Token)
(declare-const token Token)
(declare-const i Int)
(declare-const life Real)
(declare-const begun Real)
(declare-const lease Real)

(push)
(assert (= without nothing))

(echo "It holds in the beginning:")
(push) (assert (begins s)) (assert (not (holds s))) (check-sat) (pop) ; expect: unsat

(echo "Where it holds, no two count one slot:")
(push) (assert (holds s)) (assert (is-wrong s)) (check-sat) (pop) ; expect: unsat

; Each step is possible where it holds, and does not end it.
(assert (holds s))
(echo "takes:")
(push) (assert (takes s t who token i life begun lease)) (check-sat) (assert (not (holds t))) (check-sat) (pop)
; expect: sat unsat
(echo "extends:")
(push) (assert (extends s t who i life begun lease)) (check-sat) (assert (not (holds t))) (check-sat) (pop)
; expect: sat unsat
(echo "gives-up:")
(push) (assert (gives-up s t who)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "releases:")
(push) (assert (releases s t who token i)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "time-passes:")
(push) (assert (time-passes s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "loses:")
(push) (assert (loses s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(pop)

; ---- Without a part of it: a trace from the beginning to what must not be, which is none with that part

(declare-const s0 Node) (declare-const s1 Node) (declare-const s2 Node) (declare-const s3 Node) (declare-const s4 Node)
(push)
(assert (begins s0))
(assert (= longest 10.0))

(echo "without free-before:")
(push)
(assert (takes s0 s1 p p 3 5.0 0.0 5.0)) (assert (takes s1 s2 q q 3 5.0 0.0 5.0)) (assert (is-wrong s2))
(push) (assert (= without free-before)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without own-tokens:")
(push)
(assert (takes s0 s1 p p 3 5.0 0.0 5.0)) (assert (takes s1 s2 q p 3 5.0 0.0 5.0)) (assert (is-wrong s2))
(push) (assert (= without own-tokens)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without one-slot:")
(push)
(assert (takes s0 s1 p p 3 5.0 0.0 5.0)) (assert (takes s1 s2 q q 4 5.0 0.0 5.0)) (assert (is-wrong s2))
(push) (assert (= without one-slot)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without outlives:")
(push)
(assert (takes s0 s1 p p 3 5.0 0.0 6.0)) (assert (and (time-passes s1 s2) (= (now s2) 5.0)))
(assert (takes s2 s3 q q 3 5.0 5.0 5.0)) (assert (is-wrong s3))
(push) (assert (= without outlives)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without begins-early:")
(push)
(assert (takes s0 s1 p p 3 5.0 1.0 5.0)) (assert (and (time-passes s1 s2) (= (now s2) 5.0)))
(assert (takes s2 s3 q q 3 5.0 5.0 5.0)) (assert (is-wrong s3))
(push) (assert (= without begins-early)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without lives-on:")
(push)
(assert (takes s0 s1 p p 3 5.0 0.0 5.0)) (assert (extends s1 s2 q 3 5.0 0.0 5.0)) (assert (is-wrong s2))
(push) (assert (= without lives-on)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without own-token:")
(push)
(assert (takes s0 s1 p p 3 5.0 0.0 5.0)) (assert (releases s1 s2 q p 3)) (assert (takes s2 s3 q q 3 5.0 0.0 5.0))
(assert (is-wrong s3))
(push) (assert (= without own-token)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without gives-up-first:")
(push)
(assert (takes s0 s1 p p 3 5.0 0.0 5.0)) (assert (releases s1 s2 p p 3)) (assert (takes s2 s3 q q 3 5.0 0.0 5.0))
(assert (is-wrong s3))
(push) (assert (= without gives-up-first)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without waits:")
(push)
(assert (takes s0 s1 p p 3 5.0 0.0 5.0)) (assert (loses s1 s2)) (assert (takes s2 s3 q q 3 5.0 0.0 5.0))
(assert (is-wrong s3))
(push) (assert (= without waits)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)
(pop)

; ---- All nodes: of n, each permit has n/2 + 1

(declare-sort Member 0)
(declare-sort Permit 0)
(declare-fun grants (Member Permit) Bool)
(declare-fun common (Permit Permit) Member)
(declare-fun slot-of (Permit) Int)
(declare-fun is-valid (Permit) Bool)    ; now
(declare-fun permit (Int) Permit)       ; those that are valid now, by numbers

(define-fun nodes-keep ((m Member) (a Permit) (b Permit)) Bool
  (=> (and (grants m a) (grants m b) (is-valid a) (is-valid b) (= (slot-of a) (slot-of b))) (= a b)))

(push)
(assert (forall ((m Member) (a Permit) (b Permit)) (nodes-keep m a b)))
(assert (=> (has quorums-meet)
  (forall ((a Permit) (b Permit)) (and (grants (common a b) a) (grants (common a b) b)))))
(declare-const a Permit)
(declare-const b Permit)
(assert (and (distinct a b) (is-valid a) (is-valid b) (= (slot-of a) (slot-of b))))
(echo "No two permits of one slot are valid:")
(push) (assert (= without nothing)) (check-sat) (pop) ; expect: unsat
(echo "without quorums-meet:")
(push) (assert (= without quorums-meet)) (check-sat) (pop) ; expect: sat
(pop)

; ---- All slots: k + 1 numbers have no k slots

(define-fun is-slot ((f (Array Int Int)) (i Int) (slots Int)) Bool (and (<= 0 (select f i)) (< (select f i) slots)))
(define-fun are-slots ((f (Array Int Int)) (count Int) (slots Int)) Bool
  (forall ((i Int)) (=> (and (<= 0 i) (< i count)) (is-slot f i slots))))
(define-fun are-distinct ((f (Array Int Int)) (count Int)) Bool
  (forall ((i Int) (j Int)) (=> (and (<= 0 i) (< i j) (< j count)) (distinct (select f i) (select f j)))))

(push)
(declare-const f (Array Int Int))
(declare-const g (Array Int Int))
(echo "One has none of no slots:")
(push) (assert (are-slots f 1 0)) (check-sat) (pop) ; expect: unsat
(echo "With one slot and one number less, it is the same: the last number's slot takes the place of the last slot:")
(push)
(assert (<= 0 k))
(assert (and (are-slots f (+ k 2) (+ k 1)) (are-distinct f (+ k 2))))
(assert (forall ((i Int)) (= (select g i) (ite (= (select f i) k) (select f (+ k 1)) (select f i)))))
(assert (not (and (are-slots g (+ k 1) k) (are-distinct g (+ k 1)))))
(check-sat) ; expect: unsat
(pop)

; So of k + 1 numbers with k slots, two have one: x and y.
(declare-const x Int)
(declare-const y Int)
(assert (forall ((i Int)) (= (select f i) (slot-of (permit i)))))
(assert (=> (are-slots f (+ k 1) k) (and (<= 0 x) (< x y) (<= y k) (= (select f x) (select f y)))))
; Two of one slot are not valid, as is proved above.
(assert (=> (has quorums-meet)
  (forall ((i Int) (j Int))
    (=> (and (<= 0 i) (< i j) (<= j k)) (distinct (slot-of (permit i)) (slot-of (permit j)))))))
(assert (=> (has below-k) (are-slots f (+ k 1) k)))
(assert (<= 1 k))
(echo "No k + 1 permits are valid:")
(push) (assert (= without nothing)) (check-sat) (pop) ; expect: unsat
(echo "without quorums-meet, of any semaphore:")
(push) (assert (= k 1)) (assert (= (slot-of (permit 0)) 0)) (assert (= (slot-of (permit 1)) 0))
(assert (= without quorums-meet)) (check-sat) (pop) ; expect: sat
(echo "without below-k:")
(push) (assert (= k 1)) (assert (= without below-k)) (check-sat) (pop) ; expect: sat
(pop)

; ---- Nodes that count permits, instead of slots: 16 permits of 10, with majorities of five nodes

(push)
(declare-const permits Int)
(assert (<= (* permits 3) (* 10 5)))
(echo "Nodes that count to ten admit 16:")
(assert (= permits 16)) (check-sat) ; expect: sat
(pop)
