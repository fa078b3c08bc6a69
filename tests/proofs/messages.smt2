; Messages and queues break nothing (rules, section 8), for any number of calls and any kind of lock: what is lost,
; late, sent twice, forged or damaged of them ends in an attempt at most, and nodes decide that by the key of the lock
; alone.
;
; What excludes what is left open: any two calls for a plain or fenced lock, two of which one writes, two for one slot.
; So this is about all kinds at once. The frame: each step here is one of `lock-steps`, which ask for nothing that a
; queue or a message says. The other proofs have those as steps (exclusion.smt2 with wait.smt2, fences.smt2,
; readers_writers.smt2 and permits.smt2), at any moment and by any call. So what they prove holds whatever is in queues
; and channels. Besides, what the lock steps keep is proved here for one node, without time and losses.
;
; A queue is anything at each step, and so is what is under way to the calls. Each step therefore may change both at
; will: by an entry, a ticket, a lie, a flush.

(declare-datatype Part (
  (nothing)
  (looks-at-key)        ; grant: an entry that is first is granted nothing beside a hold that excludes it
  (wake-only-tells)     ; wake in queue.lua: what is told is given nothing
  (keeps-lock)          ; leave, and a challenge, in queue.lua: an entry is removed, and no key
  (won-by-grants)       ; Acquire::attempted: a call has won by replies to its attempt, however many have told it
  (named-slot-is-one)   ; search.rs: a slot that a message names is asked for if the semaphore has it
  (number-is-the-keys)  ; acquire in fence_key.lua: a fence is greater than the last one, and no ticket
))

(declare-const without Part)
(define-fun has ((part Part)) Bool (distinct part without))

(declare-sort Call 0)
(declare-fun exclude (Call Call) Bool)  ; if they ask for the same slot; a lock that is no permit has one slot
(declare-const k Int)                   ; how many slots there are

(declare-sort Queue 0)
(declare-fun is-first (Queue Call) Bool) ; by tickets, ranks, receivers: whatever the script finds
(declare-fun ticket (Queue Call) Int)

(declare-datatype Message ((silence) (turn (named Int))))

(declare-datatype World ((world
  ; Of the node.
  (has-hold (Array Call Bool))          ; the keys
  (last Int)                            ; the last fence
  (queue Queue)
  ; Between: what was sent, or seems to have been.
  (mail (Array Call Message))
  ; Of the calls.
  (told (Array Call Message))           ; what each was told
  (slot (Array Call Int))               ; for which slot each asks
  (fence (Array Call Int))              ; the number that came with the grant
  (counts (Array Call Bool)))))         ; whether each counts a grant of this node

(define-fun is-excluded ((s World) (c Call) (d Call)) Bool
  (and (distinct c d) (exclude c d) (= (select (slot s) c) (select (slot s) d))))
(define-fun admits ((s World) (c Call)) Bool
  (forall ((d Call)) (not (and (select (has-hold s) d) (is-excluded s c d)))))

; ---- What nodes and calls do with a lock, whatever is said about queues

(define-fun is-same ((s World) (t World)) Bool
  (and (= (has-hold t) (has-hold s)) (= (last t) (last s)) (= (slot t) (slot s)) (= (fence t) (fence s))
       (= (counts t) (counts s))))

; A call asks for a slot that there is. One that counts a grant does not ask for another.
(define-fun chooses ((s World) (t World) (c Call)) Bool
  (and (not (select (has-hold s) c)) (not (select (counts s) c))
       (<= 0 (select (slot t) c)) (< (select (slot t) c) k)
       (= (slot t) (store (slot s) c (select (slot t) c)))
       (= (has-hold t) (has-hold s)) (= (last t) (last s)) (= (fence t) (fence s)) (= (counts t) (counts s))))

(define-fun is-granted ((s World) (t World) (c Call)) Bool
  (and (admits s c) (< (last s) (last t))
       (<= 0 (select (slot s) c)) (< (select (slot s) c) k)
       (= (has-hold t) (store (has-hold s) c true))
       (= (fence t) (store (fence s) c (last t)))
       (= (slot t) (slot s)) (= (counts t) (counts s))))

(define-fun counts-it ((s World) (t World) (c Call)) Bool
  (and (select (has-hold s) c) (= (counts t) (store (counts s) c true))
       (= (has-hold t) (has-hold s)) (= (last t) (last s)) (= (slot t) (slot s)) (= (fence t) (fence s))))

(define-fun gives-it-back ((s World) (t World) (c Call)) Bool
  (and (= (has-hold t) (store (has-hold s) c false)) (= (counts t) (store (counts s) c false))
       (= (last t) (last s)) (= (slot t) (slot s)) (= (fence t) (fence s))))

(define-fun lock-steps ((s World) (t World) (c Call)) Bool
  (or (is-same s t) (chooses s t c) (is-granted s t c) (counts-it s t c) (gives-it-back s t c)))

; ---- The steps, from s to t

; environment: what is under way to calls, and what is in the queue, is anything: lost, late, sent twice, forged
(define-fun anything-is-said ((s World) (t World)) Bool
  (and (is-same s t) (= (told t) (told s))))

; code: src/algorithm/queue/mod.rs on_message
(define-fun is-told ((s World) (t World) (c Call)) Bool
  (and (distinct (select (mail s) c) silence)
       (= (told t) (store (told s) c (select (mail s) c)))
       (is-same s t)))

; code: src/api/lock/search.rs first_slot
(define-fun asks ((s World) (t World) (c Call)) Bool
  (let ((named-slot (select (slot t) c)))
    (and (not (select (has-hold s) c)) (not (select (counts s) c))
         (= (slot t) (store (slot s) c named-slot))
         (or (and (<= 0 named-slot) (< named-slot k))
             (and (not (has named-slot-is-one)) (= (select (told s) c) (turn named-slot))))
         (= (told t) (store (told s) c silence))
         (= (has-hold t) (has-hold s)) (= (last t) (last s)) (= (fence t) (fence s)) (= (counts t) (counts s)))))

; The node grants the call that is first, or stores its entry. `fence` is of a fenced lock, or a writer's.
; code: src/protocol/lua/fence_key.lua acquire
; code: src/protocol/lua/fenced.lua grant
; code: src/protocol/lua/plain.lua grant
; code: src/protocol/lua/permit.lua grant
; code: src/protocol/lua/read_write.lua hold
(define-fun takes ((s World) (t World) (c Call)) Bool
  (ite (and (is-first (queue s) c) (or (admits s c) (not (has looks-at-key))))
       (and (=> (has number-is-the-keys) (< (last s) (last t)))
            (=> (not (has number-is-the-keys)) (= (last t) (ticket (queue s) c)))
            (<= 0 (select (slot s) c)) (=> (has named-slot-is-one) (< (select (slot s) c) k))
            (= (has-hold t) (store (has-hold s) c true))
            (= (fence t) (store (fence s) c (last t)))
            (= (slot t) (slot s)) (= (counts t) (counts s)) (= (told t) (told s)))
       (and (is-same s t) (= (told t) (told s)))))

; A reply to the attempt, and not a message, makes it count.
; code: src/algorithm/acquire/mod.rs attempted
(define-fun counts-grant ((s World) (t World) (c Call)) Bool
  (and (or (select (has-hold s) c) (and (not (has won-by-grants)) (distinct (select (told s) c) silence)))
       (= (counts t) (store (counts s) c true))
       (= (has-hold t) (has-hold s)) (= (last t) (last s)) (= (slot t) (slot s)) (= (fence t) (fence s))
       (= (told t) (told s))))

; A release or an undo, which also stores or removes an entry, and tells others: d is one of them.
; code: src/protocol/lua/queue.lua wake
(define-fun releases ((s World) (t World) (c Call) (d Call)) Bool
  (and (= (has-hold t) (ite (has wake-only-tells) (store (has-hold s) c false)
                            (store (store (has-hold s) c false) d true)))
       (= (counts t) (store (counts s) c false))
       (= (last t) (last s)) (= (slot t) (slot s)) (= (fence t) (fence s)) (= (told t) (told s))))

; A call that has ended and is told, and one that challenges another, has entries removed: of itself, or of those in
; front. Messages can make a call do so that holds the lock.
; code: src/protocol/lua/queue.lua tell
(define-fun removes-entries ((s World) (t World) (c Call)) Bool
  (and (= (has-hold t) (ite (has keeps-lock) (has-hold s) (store (has-hold s) c false)))
       (= (last t) (last s)) (= (slot t) (slot s)) (= (fence t) (fence s)) (= (counts t) (counts s))
       (= (told t) (told s))))

; ---- The invariant

(define-fun begins ((s World)) Bool
  (and (= (has-hold s) ((as const (Array Call Bool)) false)) (= (counts s) ((as const (Array Call Bool)) false))
       (= (last s) 0) (= (fence s) ((as const (Array Call Int)) 0))
       (= (told s) ((as const (Array Call Message)) silence))))

(define-fun holds ((s World)) Bool
  (and (<= 0 (last s))
       (forall ((c Call)) (=> (select (counts s) c) (select (has-hold s) c)))
       (forall ((c Call)) (=> (select (has-hold s) c) (and (<= 0 (select (slot s) c)) (< (select (slot s) c) k))))
       (forall ((c Call)) (and (<= 0 (select (fence s) c)) (<= (select (fence s) c) (last s))))
       (forall ((c Call) (d Call))
         (=> (and (select (has-hold s) c) (select (has-hold s) d)) (not (is-excluded s c d))))
       (forall ((c Call) (d Call))
         (=> (and (distinct c d) (= (select (fence s) c) (select (fence s) d))) (= (select (fence s) c) 0)))))

; What must not be: two that exclude each other count a grant, or one counts a grant of a slot that there is not, or two
; have one fence.
(define-fun is-wrong ((s World) (c Call) (d Call)) Bool
  (or (and (select (counts s) c) (select (counts s) d) (is-excluded s c d))
      (and (select (counts s) c) (not (and (<= 0 (select (slot s) c)) (< (select (slot s) c) k))))
      (and (distinct c d) (< 0 (select (fence s) c)) (= (select (fence s) c) (select (fence s) d)))))

; ---- The proof

(declare-const s World)
(declare-const t World)
(declare-const c Call)
(declare-const d Call)
(define-fun excludes-both-ways () Bool (forall ((c Call) (d Call)) (= (exclude c d) (exclude d c))))

(push)
(assert (= without nothing))
(assert excludes-both-ways)

(echo "It holds in the beginning:")
(push) (assert (begins s)) (assert (not (holds s))) (check-sat) (pop) ; expect: unsat

(echo "Where it holds, nothing is wrong:")
(push) (assert (holds s)) (assert (is-wrong s c d)) (check-sat) (pop) ; expect: unsat

(echo "What the locks do does not end it:")
(push) (assert (holds s)) (assert (lock-steps s t c)) (assert (not (holds t))) (check-sat) (pop) ; expect: unsat

; Each step is possible, and is what the locks do.
(echo "anything-is-said:")
(push) (assert (anything-is-said s t)) (check-sat) (assert (not (lock-steps s t c))) (check-sat) (pop)
; expect: sat unsat
(echo "is-told:")
(push) (assert (is-told s t c)) (check-sat) (assert (not (lock-steps s t c))) (check-sat) (pop) ; expect: sat unsat
(echo "asks:")
(push) (assert (asks s t c)) (check-sat) (assert (not (lock-steps s t c))) (check-sat) (pop) ; expect: sat unsat
(echo "takes:")
(push) (assert (takes s t c)) (check-sat) (assert (not (lock-steps s t c))) (check-sat) (pop) ; expect: sat unsat
(echo "counts-grant:")
(push) (assert (counts-grant s t c)) (check-sat) (assert (not (lock-steps s t c))) (check-sat) (pop) ; expect: sat unsat
(echo "releases:")
(push) (assert (releases s t c d)) (check-sat) (assert (not (lock-steps s t c))) (check-sat) (pop) ; expect: sat unsat
(echo "removes-entries:")
(push) (assert (removes-entries s t c)) (check-sat) (assert (not (lock-steps s t c))) (check-sat) (pop)
; expect: sat unsat
(pop)

; ---- Without a part of it: a trace from the beginning to what must not be, which is none with that part

(declare-const e Call)
(declare-const s0 World) (declare-const s1 World) (declare-const s2 World) (declare-const s3 World)
(declare-const s4 World) (declare-const s5 World) (declare-const s6 World) (declare-const s7 World)
(push)
; Three calls, for a lock with one slot that one of them has at a time.
(assert (distinct c d e))
(assert (forall ((x Call)) (or (= x c) (= x d) (= x e))))
(assert (and (exclude c d) (exclude d c) (exclude c e) (exclude e c) (exclude d e) (exclude e d)))
(assert (= k 1))
(assert (begins s0))

(echo "without looks-at-key:")
(push)
(assert (asks s0 s1 c)) (assert (asks s1 s2 d)) (assert (takes s2 s3 c)) (assert (takes s3 s4 d))
(assert (counts-grant s4 s5 c)) (assert (counts-grant s5 s6 d)) (assert (is-wrong s6 c d))
(push) (assert (= without looks-at-key)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without wake-only-tells:")
(push)
(assert (asks s0 s1 c)) (assert (asks s1 s2 d)) (assert (takes s2 s3 c)) (assert (counts-grant s3 s4 c))
(assert (releases s4 s5 e d)) (assert (counts-grant s5 s6 d)) (assert (is-wrong s6 c d))
(push) (assert (= without wake-only-tells)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without keeps-lock:")
(push)
(assert (asks s0 s1 c)) (assert (asks s1 s2 d)) (assert (takes s2 s3 c)) (assert (counts-grant s3 s4 c))
(assert (removes-entries s4 s5 c)) (assert (takes s5 s6 d)) (assert (counts-grant s6 s7 d)) (assert (is-wrong s7 c d))
(push) (assert (= without keeps-lock)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without won-by-grants:")
(push)
(assert (asks s0 s1 c)) (assert (asks s1 s2 d)) (assert (takes s2 s3 c)) (assert (counts-grant s3 s4 c))
(assert (is-told s4 s5 d)) (assert (counts-grant s5 s6 d)) (assert (is-wrong s6 c d))
(push) (assert (= without won-by-grants)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without named-slot-is-one:")
(push)
(assert (is-told s0 s1 c)) (assert (asks s1 s2 c)) (assert (takes s2 s3 c)) (assert (counts-grant s3 s4 c))
(assert (is-wrong s4 c d))
(push) (assert (= without named-slot-is-one)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)

(echo "without number-is-the-keys:")
(push)
(assert (asks s0 s1 c)) (assert (asks s1 s2 d)) (assert (takes s2 s3 c)) (assert (releases s3 s4 c e))
(assert (takes s4 s5 d)) (assert (is-wrong s5 c d))
(push) (assert (= without number-is-the-keys)) (check-sat) (pop) ; expect: sat
(assert (= without nothing)) (check-sat) ; expect: unsat
(pop)
(pop)
