; "A founding is a loss of what nobody was promised" (rule 7.12), by induction over nodes and programs.
;
; A founder counts at once, though it may have lost its data, or never had any. That is sound where no lease rests on
; what it has lost. So there is a round of the holder's, and a node that has granted it, was counted, and has lost its
; data: the loss. What is proved: no program founds a deployment from then on, until the round has ended.
;
; A program founds if a quorum of nodes has replied, and all of them look new. One of them is of the quorum that has won
; the round, too: the witness, which may be the node of the loss as well. There are two exceptions:
; 1. All that have replied have lost their notes, or never had one. So the proof takes a witness that has a note from
;    when its grant was counted, or an earlier one.
; 2. There is a loss within a moment of a founding, or between the looks of a program that founds and its notes.
;
; With `Strict`, a founder waits as any other node, and nothing of this is needed (wait.smt2).

(declare-datatype Part (
  (nothing)
  (one-knows)           ; the first exception; all nodes are judged when each has replied, or is late
  (not-at-once)         ; the second one
  (not-while-founding)  ; likewise; no program founds by a look that is older than a moment
  (founders-only)       ; a young note is new if it is a founder's: who notes as of now has found something older
  (both-clocks)         ; it is young by both clocks, and not both were set back
  (counts-when-noted)   ; no grant counts before its node is noted: every program notes, and awaits the reply
  (by-induction)        ; no program has founded since the loss
))

(declare-const without Part)
(define-fun has ((part Part)) Bool (distinct part without))

(declare-const moment Real)             ; how old a founder may be that looks new: a second
(assert (< 0 moment))

; ---- The state, while the round is relied on

; What the witness remembers of itself. The note may be that of an earlier incarnation.
(declare-datatype Note ((absent) (note (is-present Bool) (is-founder Bool) (written Real))))

; A look of a program at the witness: whether it looked new, and had a note from when its grant was counted.
(declare-datatype Look ((unseen) (look (is-new Bool) (knew Bool))))

(declare-datatype World ((world
  (now Real)
  (is-lost Bool) (lost Real)            ; whether there was a loss, and when
  (memo Note)
  (founded Real)                        ; when the witness was noted as a founder for the last time
  (knows Bool)                          ; whether it has a note from when its grant was counted, or an earlier one
  (seen Look))))                        ; by a program, any one

; ---- The steps, from s to t

; environment: the clock
(define-fun time-passes ((s World) (t World)) Bool
  (and (<= (now s) (now t))
       (= t (world (now t) (is-lost s) (lost s) (memo s) (founded s) (knows s) (seen s)))))

; Programs look again after a loss.
; environment: a server
(define-fun loss ((s World) (t World)) Bool
  (and (=> (has not-at-once) (<= (+ (founded s) moment) (now s)))
       (= t (world (now s) true (now s) (memo s) (founded s) (knows s)
                   (ite (has not-while-founding) unseen (seen s))))))

; The witness has no note, or one that it once had.
; environment: a server, or an operator
(define-fun witness-forgets ((s World) (t World)) Bool
  (let ((m (memo t)))
    (and (=> ((_ is note) m) (and (not (is-present m)) (<= (written m) (now s))
                                  (=> (is-founder m) (<= (written m) (founded s)))))
         (= t (world (now s) (is-lost s) (lost s) m (founded s) (and (knows s) (distinct m absent)) (seen s))))))

; The witness is the node of the loss.
; environment: a server
(define-fun witness-is-lost ((s World) (t World)) Bool
  (let ((u (world (now s) (is-lost s) (lost s) (memo t) (founded s) (knows t) (seen s))))
    (and (witness-forgets s u) (loss u t))))

; The grant of the witness is counted.
; code: src/algorithm/incarnation/mod.rs standing
(define-fun witness-counts ((s World) (t World)) Bool
  (and (=> (has counts-when-noted) (and ((_ is note) (memo s)) (is-present (memo s))))
       (= t (world (now s) (is-lost s) (lost s) (memo s) (founded s) true (seen s)))))

; By any program. The time of a note is that of the look before it, or a later one.
; code: src/algorithm/incarnation/mod.rs notes
(define-fun witness-is-noted-since ((s World) (t World)) Bool
  (let ((m (memo t)))
    (and ((_ is note) m) (is-present m) (not (is-founder m)) (<= (written m) (now s))
         (= t (world (now s) (is-lost s) (lost s) m (founded s) (knows s) (seen s))))))

; By any program that founds. The invariant holds for that one and its witness, before, so that there is no loss.
; code: src/algorithm/incarnation/mod.rs notes
(define-fun witness-is-founded ((s World) (t World)) Bool
  (let ((m (memo t)))
    (and (=> (has by-induction) (not (is-lost s)))
         ((_ is note) m) (is-present m) (is-founder m) (<= (written m) (now s))
         (= t (world (now s) (is-lost s) (lost s) m (now s) (knows s) (seen s))))))

; `by-node` and `by-wall` are the ages of the note by two clocks, of which one at least was not set back.
(define-fun looks-new ((s World) (by-node Real) (by-wall Real)) Bool
  (let ((m (memo s)))
    (or (= m absent)
        (and (or (is-founder m) (not (has founders-only)))
             (< by-node moment)
             (=> (has both-clocks) (< by-wall moment))))))

; code: src/algorithm/incarnation/mod.rs is_fresh
(define-fun program-looks ((s World) (t World) (by-node Real) (by-wall Real)) Bool
  (let ((age (- (now s) (written (memo s)))))
    (and (=> ((_ is note) (memo s)) (or (<= age by-node) (<= age by-wall)))
         (= t (world (now s) (is-lost s) (lost s) (memo s) (founded s) (knows s)
                     (look (looks-new s by-node by-wall) (knows s)))))))

; environment: a program
(define-fun another-begins ((s World) (t World)) Bool
  (= t (world (now s) (is-lost s) (lost s) (memo s) (founded s) (knows s) unseen)))

; ---- The invariant

(define-fun begins ((s World)) Bool
  (= s (world (now s) false (now s) absent (founded s) false unseen)))

(define-fun holds ((s World)) Bool
  (let ((m (memo s)) (l (seen s)))
    (and (<= (lost s) (now s))
         (=> ((_ is note) m) (<= (written m) (now s)))
         (=> (and ((_ is note) m) (is-founder m)) (<= (written m) (founded s)))
         ; There was no founding after the loss, nor a moment before.
         (=> (is-lost s) (<= (+ (founded s) moment) (lost s)))
         (=> (knows s) (distinct m absent))
         ; So the witness has looked new to nobody since, if it knows.
         (=> (and (is-lost s) ((_ is look) l) (knew l)) (not (is-new l))))))

; What must not be: a program founds, by what it has seen at the witness, though there is a loss.
(define-fun founds-in-spite-of-it ((s World)) Bool
  (let ((l (seen s)))
    (and (is-lost s) ((_ is look) l) (is-new l) (=> (has one-knows) (knew l)))))

; ---- The proof

(declare-const s World)
(declare-const t World)
(declare-const by-node Real)
(declare-const by-wall Real)

(push)
(assert (= without nothing))

(echo "It holds in the beginning:")
(push) (assert (begins s)) (assert (not (holds s))) (check-sat) (pop) ; expect: unsat

(echo "Where it holds, no program founds in spite of a loss:")
(push) (assert (holds s)) (assert (founds-in-spite-of-it s)) (check-sat) (pop) ; expect: unsat

; Each step is possible where it holds, and does not end it.
(assert (holds s))
(echo "time-passes:")
(push) (assert (time-passes s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "loss:")
(push) (assert (loss s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "witness-is-lost:")
(push) (assert (witness-is-lost s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "witness-counts:")
(push) (assert (witness-counts s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "witness-forgets:")
(push) (assert (witness-forgets s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "witness-is-noted-since:")
(push) (assert (witness-is-noted-since s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "witness-is-founded:")
(push) (assert (witness-is-founded s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "program-looks:")
(push) (assert (program-looks s t by-node by-wall)) (check-sat) (assert (not (holds t))) (check-sat) (pop)
; expect: sat unsat
(echo "another-begins:")
(push) (assert (another-begins s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(pop)

; ---- Without a part of it

(define-fun step ((s World) (t World) (by-node Real) (by-wall Real)) Bool
  (or (time-passes s t) (loss s t) (witness-is-lost s t) (witness-forgets s t) (witness-counts s t)
      (witness-is-noted-since s t) (witness-is-founded s t) (program-looks s t by-node by-wall) (another-begins s t)))

(declare-const s0 World) (declare-const s1 World) (declare-const s2 World) (declare-const s3 World)
(declare-const s4 World) (declare-const s5 World) (declare-const s6 World) (declare-const s7 World)
(assert (begins s0))
(declare-const by-node0 Real) (declare-const by-wall0 Real) (assert (step s0 s1 by-node0 by-wall0))
(declare-const by-node1 Real) (declare-const by-wall1 Real) (assert (step s1 s2 by-node1 by-wall1))
(declare-const by-node2 Real) (declare-const by-wall2 Real) (assert (step s2 s3 by-node2 by-wall2))
(declare-const by-node3 Real) (declare-const by-wall3 Real) (assert (step s3 s4 by-node3 by-wall3))
(declare-const by-node4 Real) (declare-const by-wall4 Real) (assert (step s4 s5 by-node4 by-wall4))
(declare-const by-node5 Real) (declare-const by-wall5 Real) (assert (step s5 s6 by-node5 by-wall5))
(declare-const by-node6 Real) (declare-const by-wall6 Real) (assert (step s6 s7 by-node6 by-wall6))
(assert (founds-in-spite-of-it s7))

(echo "with all of it:")
(push) (assert (= without nothing)) (check-sat) (pop) ; expect: unsat
(echo "without one-knows:")
(push) (assert (= without one-knows)) (check-sat) (pop) ; expect: sat
(echo "without not-while-founding:")
(push) (assert (= without not-while-founding)) (check-sat) (pop) ; expect: sat
(echo "without not-at-once:")
(push) (assert (= without not-at-once)) (check-sat) (pop) ; expect: sat
(echo "without founders-only:")
(push) (assert (= without founders-only)) (check-sat) (pop) ; expect: sat
(echo "without both-clocks:")
(push) (assert (= without both-clocks)) (check-sat) (pop) ; expect: sat
(echo "without counts-when-noted:")
(push) (assert (= without counts-when-noted)) (check-sat) (pop) ; expect: sat
(echo "without by-induction:")
(push) (assert (= without by-induction)) (check-sat) (pop) ; expect: sat
