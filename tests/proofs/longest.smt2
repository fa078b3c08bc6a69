; When a program knows the longest time to live of the others (rule 7.12), by induction over nodes and programs.
;
; The holder's program stores it at each node whose note it has read, before a vote counts; a node without a note gets
; one that has it. A node was told if it has the note of then still, or one by a program that knows. A program knows
; while its last look at one of its nodes was at one that was told. This is any node, and any program, of all that there
; are. What is proved: a program that knows goes by a time to live that is no shorter.
;
; So a program is mistaken only where all nodes that were told have lost their notes, do not reply, or were looked at
; before they were told. That is open, for programs with different times to live.

(declare-datatype Part (
  (nothing)
  (stores)              ; the longest time to live is stored before a vote counts
  (reads-all)           ; all notes that were read count, and not only that of the node which votes
  (notes-what-it-knows) ; a note has the longest time to live that its writer knows
  (as-it-was-read)      ; a note is changed only where it is still the one that was read
))

(declare-const without Part)
(define-fun has ((part Part)) Bool (distinct part without))

(declare-const longest Real)            ; that of the holder's program

; ---- The state

(declare-datatype Note ((absent) (note (max-ttl Real))))

(declare-datatype World ((world
  (memo Note)                           ; of the node
  (told Bool)
  (read Note)                           ; what the program has read at its last look at the node
  (read-told Bool)                      ; whether the node was told then
  (elsewhere Real)                      ; the longest time to live of its own, and by its looks at other nodes
  (told-elsewhere Bool))))              ; whether one of those was told

(define-fun ttl-of ((m Note)) Real (ite ((_ is note) m) (max-ttl m) 0.0))
(define-fun greater ((x Real) (y Real)) Real (ite (< x y) y x))
(define-fun knows ((s World)) Bool (or (read-told s) (told-elsewhere s)))
; By what the program goes.
(define-fun known ((s World)) Real (ite (has reads-all) (greater (ttl-of (read s)) (elsewhere s)) (elsewhere s)))

; ---- The steps, from s to t

; code: src/algorithm/incarnation/mod.rs is_longer
(define-fun holder-counts ((s World) (t World)) Bool
  (and (=> (has stores) (<= longest (ttl-of (memo s))))
       (= t (world (memo s) true (read s) (read-told s) (elsewhere s) (told-elsewhere s)))))

; code: src/algorithm/incarnation/mod.rs longest
(define-fun program-looks ((s World) (t World)) Bool
  (= t (world (memo s) (told s) (memo s) (told s) (elsewhere s) (told-elsewhere s))))

; At nodes for which the invariant holds as well, or with a time to live of its own.
; code: src/algorithm/incarnation/mod.rs longest
(define-fun program-looks-elsewhere ((s World) (t World)) Bool
  (and (<= 0 (elsewhere t))
       (=> (told-elsewhere t) (<= longest (elsewhere t)))
       (= t (world (memo s) (told s) (read s) (read-told s) (elsewhere t) (told-elsewhere t)))))

; code: src/engine/nodes/judging.rs on_silence
(define-fun node-is-silent ((s World) (t World)) Bool
  (= t (world (memo s) (told s) absent false (elsewhere s) (told-elsewhere s))))

; A note that is new, or one with a longer time to live.
; code: src/algorithm/incarnation/mod.rs notes
(define-fun program-notes ((s World) (t World)) Bool
  (and (=> (has as-it-was-read) (= (read s) (memo s)))
       (= (memo t) (note (ite (has notes-what-it-knows) (known s) (elsewhere s))))
       (= t (world (memo t) (or (told s) (knows s)) (read s) (read-told s) (elsewhere s) (told-elsewhere s)))))

; By a restart, a flush or a promotion. There may be an older note then.
; environment: a server, or an operator
(define-fun note-is-lost ((s World) (t World)) Bool
  (= t (world (memo t) false (read s) (read-told s) (elsewhere s) (told-elsewhere s))))

; ---- The invariant

(define-fun begins ((s World)) Bool (= s (world absent false absent false 0.0 false)))

(define-fun holds ((s World)) Bool
  (and (=> (told s) (<= longest (ttl-of (memo s))))
       (=> (read-told s) (<= longest (ttl-of (read s))))
       (=> (told-elsewhere s) (<= longest (elsewhere s)))))

(define-fun is-mistaken ((s World)) Bool (and (knows s) (< (known s) longest)))

; ---- The proof

(assert (< 0 longest))
(declare-const s World)
(declare-const t World)

(push)
(assert (= without nothing))

(echo "It holds in the beginning:")
(push) (assert (begins s)) (assert (not (holds s))) (check-sat) (pop) ; expect: unsat

(echo "Where it holds, no program that knows is mistaken:")
(push) (assert (holds s)) (assert (is-mistaken s)) (check-sat) (pop) ; expect: unsat

; Each step is possible where it holds, and does not end it.
(assert (holds s))
(echo "holder-counts:")
(push) (assert (holder-counts s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "program-looks:")
(push) (assert (program-looks s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "program-looks-elsewhere:")
(push) (assert (program-looks-elsewhere s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "program-notes:")
(push) (assert (program-notes s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "node-is-silent:")
(push) (assert (node-is-silent s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "note-is-lost:")
(push) (assert (note-is-lost s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(pop)

; ---- Without a part of it

(define-fun step ((s World) (t World)) Bool
  (or (holder-counts s t) (program-looks s t) (program-looks-elsewhere s t) (node-is-silent s t) (program-notes s t)
      (note-is-lost s t)))

(declare-const s0 World) (declare-const s1 World) (declare-const s2 World) (declare-const s3 World)
(declare-const s4 World) (declare-const s5 World) (declare-const s6 World) (declare-const s7 World)
(assert (begins s0))
(assert (step s0 s1)) (assert (step s1 s2)) (assert (step s2 s3)) (assert (step s3 s4))
(assert (step s4 s5)) (assert (step s5 s6)) (assert (step s6 s7))
(assert (is-mistaken s7))
(echo "with all of it:")
(push) (assert (= without nothing)) (check-sat) (pop) ; expect: unsat
(echo "without stores:")
(push) (assert (= without stores)) (check-sat) (pop) ; expect: sat
(echo "without reads-all:")
(push) (assert (= without reads-all)) (check-sat) (pop) ; expect: sat
(echo "without notes-what-it-knows:")
(push) (assert (= without notes-what-it-knows)) (check-sat) (pop) ; expect: sat
(echo "without as-it-was-read:")
(push) (assert (= without as-it-was-read)) (check-sat) (pop) ; expect: sat
