; The wait of a node that has lost its keys (rule 7.12), by induction: for any number of nodes, programs and restarts.
;
; Two rounds that are won, each an acquisition or an extension, have a node in common that has granted both
; (exclusion.smt2). This is that node. The program that it has granted first is called the holder, the other one the
; rival. Third programs do here what they may, as often as they like. What is proved: the rival does not count the
; node's vote before the holder's round has ended.
;
; Each step that can change the node, or what the two know of it, keeps an invariant. A second part removes what the
; proof rests on, one by one: without it, there is a trace of at most seven steps to two holders.
;
; All time is true time: by clocks that run at different rates, a key lasts as long as its lease at least, for which the
; drift is. A clock that is set is in the proof. What a client has met itself (rule 7.4) makes it wait more, and is left
; out. What a node has after a restart is anything: each snapshot, each replica's data, none.

; ---- What the proof rests on

(declare-datatype Part (
  (nothing)
  (waits)             ; Rules::standing: one that was noted as of now counts when its age is the longest time to live
  (names-its-own)     ; Look::note: a note counts for the incarnation that it names
  (least-age)         ; Look::age: the lesser of two ages counts, and not both clocks were set forward
  (knows-longest)     ; Rules::longest: the rival knows the longest time to live; longest.smt2 proves when
  (founds-unpromised) ; Rules::notes: a founder has lost nothing that was promised; founding.smt2 proves when
  (as-it-was-read)    ; node.lua: a note is changed only where it is still the one that was read
  (renames)           ; Incarnation::is_still: a process has a name of its own, and data have another after a promotion
  (ends-connections)  ; Nodes::on_silence: a connection ends with its process, and a look holds for one connection
  (looks-again)       ; Session::recheck: no vote comes between a loss within a process and the next look: open for a
                      ; second by default; in strict mode a look behind the vote decides, and this is not needed
  (dates-notes)       ; node.lua: none is dated before a loss within a process: it is as of a look that is a moment old,
                      ; and has the node's time besides, so that a loss and a clock that is set have to coincide
  (keeps)             ; a node has its locks until they end, or loses its note as well; eviction is left open
  (outlives)          ; Ttl::new: a lease is shorter than the time to live, by the drift
  (begins-early)      ; algorithm/lease.rs: a round is valid from before its first byte, not from its replies
  (gives-up-first)    ; a lock that is released is relied on no more
))

(declare-const without Part)    ; nothing in the proof, and one of these in each trace
(define-fun has ((part Part)) Bool (distinct part without))

(declare-const strict Bool)             ; the policy of the two programs: proved for both policies
(declare-const longest Real)            ; the longest time to live that the holder's program asks for
(assert (< 0 longest))

; ---- The state

(declare-datatype Owner ((free) (holder) (rival) (third)))
(declare-datatype Key ((key (owner Owner) (ends Real))))

; What the node remembers of itself: which incarnation, as what, and when it was written.
(declare-datatype Note ((absent) (note (names Int) (is-founder Bool) (written Real))))

; What the node has granted the holder in this round: when; when the round has begun, and for how long it asked; whether
; the holder counts it, now or later, for which a note is needed; and whether the node has lost its data since.
(declare-datatype Grant ((no-grant) (grant (granted Real) (begun Real) (ttl Real) (counts Bool) (lost Bool))))

; From when on votes count.
(declare-datatype From ((never) (from (time Real))))

; What the rival knows on its present connection, whether it was granted since the holder was, and from when on it
; counts that grant.
(declare-datatype Rival ((knowing (look From) (asked Bool) (vote From))))

(declare-datatype Node ((node
  (now Real)
  (present Int)                         ; the incarnation: a greater number is a later one
  (born Real)                           ; when it has lost its data for the last time
  (lock Key)
  (memo Note)
  (promise Grant)
  (other Rival))))

(define-fun is-free ((s Node)) Bool (or (= (owner (lock s)) free) (<= (ends (lock s)) (now s))))
(define-fun is-noted ((s Node)) Bool (and ((_ is note) (memo s)) (= (names (memo s)) (present s))))
(define-fun until ((g Grant)) Real (+ (begun g) (ttl g)))
(define-fun is-relied-on ((s Node)) Bool (and ((_ is grant) (promise s)) (< (now s) (until (promise s)))))

; ---- The steps, from s to t

; environment: the clock
(define-fun time-passes ((s Node) (t Node)) Bool
  (and (<= (now s) (now t))
       (= t (node (now t) (present s) (born s) (lock s) (memo s) (promise s) (other s)))))

; An acquisition, an extension, or a repair. Grants to the rival of before are before the holder's, and another case:
; that with the names exchanged.
; code: src/protocol/lua/plain.lua grant
; code: src/algorithm/lease.rs lease_from
; code: src/algorithm/acquire/mod.rs conclude
(define-fun holder-is-granted ((s Node) (t Node)) Bool
  (let ((g (promise t)))
    (and (or (is-free s) (= (owner (lock s)) holder))
         ((_ is grant) g)
         (= (granted g) (now s))
         (=> (has begins-early) (<= (begun g) (now s)))
         (< 0 (ttl g)) (<= (ttl g) longest)
         (=> (counts g) (is-noted s))
         (not (lost g))
         (= (owner (lock t)) holder)
         (=> (has outlives) (<= (+ (now s) (ttl g)) (ends (lock t))))
         (= t (node (now s) (present s) (born s) (lock t) (memo s) g (knowing (look (other s)) false never))))))

; The holder's key gets another time to live, by a round that is not this one. A shorter one is relied on no longer.
; code: src/protocol/lua/extend.lua PEXPIRE
; code: src/algorithm/vote/mod.rs extension
(define-fun holder-is-extended ((s Node) (t Node)) Bool
  (let ((g (promise s)) (h (promise t)))
    (and (or (is-free s) (= (owner (lock s)) holder))
         (= (owner (lock t)) holder)
         (or (= h no-grant)
             (and ((_ is grant) g) (<= (ttl h) (ttl g)) (<= (until h) (ends (lock t)))
                  (= h (grant (granted g) (begun g) (ttl h) (counts g) (lost g)))))
         (= t (node (now s) (present s) (born s) (lock t) (memo s) h (other s))))))

; code: src/api/held_lock/release.rs leave_watch
; code: src/algorithm/acquire/mod.rs poll
(define-fun holder-gives-up ((s Node) (t Node)) Bool
  (= t (node (now s) (present s) (born s) (lock s) (memo s) no-grant (other s))))

; code: src/protocol/lua/token_key.lua DEL
(define-fun holder-is-released ((s Node) (t Node)) Bool
  (and (= (owner (lock s)) holder)
       (=> (has gives-up-first) (= (promise s) no-grant))
       (= t (node (now s) (present s) (born s) (key free (now s)) (memo s) (promise s) (other s)))))

; What a look tells: from when on the node counts, if it does. `age` is that of the note, and `known` the longest time
; to live that was read.
(define-fun may-count-from ((s Node) (c Real) (age Real) (known Real)) Bool
  (and ((_ is note) (memo s))
       (=> (has names-its-own) (is-noted s))
       (=> (has least-age) (<= age (- (now s) (written (memo s)))))
       (=> (has knows-longest) (<= longest known))
       (<= (now s) c)
       (or (and (is-founder (memo s)) (not strict))
           (=> (has waits) (<= (+ (now s) (- known age)) c)))))

; A grant that waits for this look counts by it: until the node was judged, or noted, and always in strict mode.
; code: src/algorithm/incarnation/mod.rs standing
; code: src/algorithm/quarantine.rs wait_by_note
(define-fun rival-looks ((s Node) (t Node) (age Real) (known Real)) Bool
  (let ((r (other s)) (found (look (other t))))
    (and (or (= found never) (may-count-from s (time found) age known))
         (= t (node (now s) (present s) (born s) (lock s) (memo s) (promise s)
                    (knowing found (asked r) (ite (asked r) found (vote r))))))))

; code: src/protocol/lua/plain.lua grant
; code: src/algorithm/quarantine.rs of_attempt
(define-fun rival-is-granted ((s Node) (t Node)) Bool
  (and (or (is-free s) (= (owner (lock s)) rival))
       (= (owner (lock t)) rival)
       (= t (node (now s) (present s) (born s) (lock t) (memo s) (promise s)
                  (knowing (look (other s)) true (ite strict never (look (other s))))))))

; code: src/protocol/lua/plain.lua grant
(define-fun third-is-granted ((s Node) (t Node)) Bool
  (and (or (is-free s) (= (owner (lock s)) third))
       (= (owner (lock t)) third)
       (= t (node (now s) (present s) (born s) (lock t) (memo s) (promise s) (other s)))))

; code: src/protocol/lua/token_key.lua DEL
(define-fun others-are-released ((s Node) (t Node)) Bool
  (and (or (= (owner (lock s)) rival) (= (owner (lock s)) third))
       (= t (node (now s) (present s) (born s) (key free (now s)) (memo s) (promise s) (other s)))))

; A note by any program, about the incarnation that it has looked at, and as of that look.
(define-fun noted-now ((s Node) (t Node)) Bool
  (let ((g (promise s)) (h (promise t)) (m (memo t)))
    (and ((_ is note) m)
         (<= (names m) (present s))
         (=> (and (has dates-notes) (= (names m) (present s))) (<= (born s) (written m)))
         (<= (written m) (now s))
         (or (= h g)
             (and ((_ is grant) g) (= (names m) (present s))
                  (= h (grant (granted g) (begun g) (ttl g) true (lost g)))))
         (= t (node (now s) (present s) (born s) (lock s) m h (other s))))))

; code: src/algorithm/incarnation/mod.rs notes
; code: src/protocol/node_note.rs store
(define-fun noted-since ((s Node) (t Node)) Bool
  (and (noted-now s t) (not (is-founder (memo t)))))

; code: src/algorithm/incarnation/mod.rs notes
; code: src/protocol/node_note.rs store
(define-fun noted-as-founder ((s Node) (t Node)) Bool
  (and (noted-now s t) (is-founder (memo t))
       (=> (and (has founds-unpromised) (not strict)) (not (and (is-relied-on s) (lost (promise s)))))))

; A longer time to live is stored, and the times are kept. The note that was read is from before the loss.
; code: src/algorithm/incarnation/mod.rs is_longer
; code: src/protocol/node_note.rs store
(define-fun max-ttl-is-raised ((s Node) (t Node)) Bool
  (let ((m (memo t)))
    (and ((_ is note) m)
         (=> (has as-it-was-read) (= m (memo s)))
         (or (= m (memo s)) (and (<= (names m) (present s)) (<= (written m) (born s))))
         (= t (node (now s) (present s) (born s) (lock s) m (promise s) (other s))))))

; What a loss leaves of a grant.
(define-fun after-loss ((g Grant)) Grant
  (ite (and ((_ is grant) g) (counts g)) (grant (granted g) (begun g) (ttl g) true true) no-grant))

; What the rival knows after one, where its connection has ended or it has to look again. A grant under way stays.
(define-fun looks-anew ((r Rival)) Rival (knowing never false (vote r)))
(define-fun in-one-process ((r Rival)) Rival (ite (and (has looks-again) (not strict)) (looks-anew r) r))

; Data are as they may have been at any time before: a note in them names an earlier incarnation.
(define-fun has-other-data ((s Node) (t Node)) Bool
  (and (<= (present s) (present t))
       (=> (has renames) (< (present s) (present t)))
       (=> ((_ is note) (memo t)) (<= (names (memo t)) (present s)))))

; environment: a server
(define-fun restarts ((s Node) (t Node)) Bool
  (and (has-other-data s t)
       (= t (node (now s) (present t) (now s) (lock t) (memo t) (after-loss (promise s))
                  (ite (has ends-connections) (looks-anew (other s)) (other s))))))

; Within a process: it was a replica, and has what its master had.
; environment: an operator
(define-fun is-promoted ((s Node) (t Node)) Bool
  (and (has-other-data s t)
       (= t (node (now s) (present t) (now s) (lock t) (memo t) (after-loss (promise s))
                  (in-one-process (other s))))))

; environment: an operator
(define-fun is-flushed ((s Node) (t Node)) Bool
  (= t (node (now s) (present s) (now s) (key free (now s)) absent (after-loss (promise s))
             (in-one-process (other s)))))

; environment: an operator
(define-fun note-is-deleted ((s Node) (t Node)) Bool
  (= t (node (now s) (present s) (born s) (lock s) absent (promise s)
             (in-one-process (other s)))))

; environment: a server
(define-fun lock-is-evicted ((s Node) (t Node)) Bool
  (and (not (has keeps))
       (= t (node (now s) (present s) (born s) (key free (now s)) (memo s) (promise s) (other s)))))

; ---- The invariant

(define-fun begins ((s Node)) Bool
  (and (= (memo s) absent) (= (owner (lock s)) free) (<= (born s) (now s))
       (= (promise s) no-grant) (= (other s) (knowing never false never))))

(define-fun holds ((s Node)) Bool
  (let ((g (promise s)) (r (other s)))
    (and
      (<= (born s) (now s))
      ; A note of the present incarnation was written in it.
      (=> ((_ is note) (memo s)) (<= (names (memo s)) (present s)))
      (=> (is-noted s) (and (<= (born s) (written (memo s))) (<= (written (memo s)) (now s))))
      ; What was granted ends when the longest time to live has passed, at the latest.
      (=> ((_ is grant) g) (and (<= (granted g) (now s)) (<= (until g) (+ (granted g) longest))))
      ; While the holder relies on it, its key is there, or the node has lost its data since the grant.
      (=> (and (is-relied-on s) (not (lost g)))
          (and (= (owner (lock s)) holder) (<= (until g) (ends (lock s)))))
      (=> (and ((_ is grant) g) (lost g)) (<= (granted g) (born s)))
      ; In the latter case the node is no founder, and it counts for nobody before the holder's round has ended.
      (=> (and (is-relied-on s) (lost g) (is-noted s) (not strict)) (not (is-founder (memo s))))
      (=> (and (is-relied-on s) (lost g) ((_ is from) (look r)) (not strict)) (<= (until g) (time (look r))))
      ; The rival was granted only then.
      (=> (and (is-relied-on s) (asked r)) (lost g))
      (=> (and (is-relied-on s) ((_ is from) (vote r))) (<= (until g) (time (vote r)))))))

; What must not be: the rival counts a grant that came after the holder's, while the holder relies on its own.
(define-fun rival-counts ((s Node)) Bool (and ((_ is from) (vote (other s))) (<= (time (vote (other s))) (now s))))
(define-fun two-hold ((s Node)) Bool (and (is-relied-on s) (counts (promise s)) (rival-counts s)))

; ---- The proof

(declare-const s Node)
(declare-const t Node)
(declare-const age Real)
(declare-const known Real)

(push)
(assert (= without nothing))

(echo "It holds in the beginning:")
(push) (assert (begins s)) (assert (not (holds s))) (check-sat) (pop) ; expect: unsat

(echo "Where it holds, no two hold the lock:")
(push) (assert (holds s)) (assert (two-hold s)) (check-sat) (pop) ; expect: unsat

(echo "It does not exclude that the node has forgotten the holder, and the rival waits:")
(push) (assert (holds s)) (assert (is-relied-on s)) (assert (lost (promise s))) (assert (asked (other s))) (check-sat)
(pop) ; expect: sat

; Each step is possible where it holds, and does not end it.
(assert (holds s))
(echo "time-passes:")
(push) (assert (time-passes s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "holder-is-granted:")
(push) (assert (holder-is-granted s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "holder-is-extended:")
(push) (assert (holder-is-extended s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "holder-gives-up:")
(push) (assert (holder-gives-up s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "holder-is-released:")
(push) (assert (holder-is-released s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "rival-looks:")
(push) (assert (rival-looks s t age known)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "rival-is-granted:")
(push) (assert (rival-is-granted s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "third-is-granted:")
(push) (assert (third-is-granted s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "others-are-released:")
(push) (assert (others-are-released s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "noted-since:")
(push) (assert (noted-since s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "noted-as-founder:")
(push) (assert (noted-as-founder s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "max-ttl-is-raised:")
(push) (assert (max-ttl-is-raised s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "restarts:")
(push) (assert (restarts s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "is-promoted:")
(push) (assert (is-promoted s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "is-flushed:")
(push) (assert (is-flushed s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
(echo "note-is-deleted:")
(push) (assert (note-is-deleted s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: sat unsat
; This one is excluded.
(echo "lock-is-evicted:")
(push) (assert (lock-is-evicted s t)) (check-sat) (assert (not (holds t))) (check-sat) (pop) ; expect: unsat unsat
(pop)

; ---- Without a part of it

(define-fun step ((s Node) (t Node) (age Real) (known Real)) Bool
  (or (time-passes s t) (holder-is-granted s t) (holder-is-extended s t) (holder-gives-up s t) (holder-is-released s t)
      (rival-looks s t age known) (rival-is-granted s t) (third-is-granted s t) (others-are-released s t)
      (noted-since s t) (noted-as-founder s t) (max-ttl-is-raised s t)
      (restarts s t) (is-promoted s t) (is-flushed s t) (note-is-deleted s t) (lock-is-evicted s t)))

(declare-const s0 Node) (declare-const s1 Node) (declare-const s2 Node) (declare-const s3 Node)
(declare-const s4 Node) (declare-const s5 Node) (declare-const s6 Node) (declare-const s7 Node)
(assert (begins s0))
(declare-const age0 Real) (declare-const known0 Real) (assert (step s0 s1 age0 known0))
(declare-const age1 Real) (declare-const known1 Real) (assert (step s1 s2 age1 known1))
(declare-const age2 Real) (declare-const known2 Real) (assert (step s2 s3 age2 known2))
(declare-const age3 Real) (declare-const known3 Real) (assert (step s3 s4 age3 known3))
(declare-const age4 Real) (declare-const known4 Real) (assert (step s4 s5 age4 known4))
(declare-const age5 Real) (declare-const known5 Real) (assert (step s5 s6 age5 known5))
(declare-const age6 Real) (declare-const known6 Real) (assert (step s6 s7 age6 known6))
(assert (two-hold s7))

(echo "without waits:")
(push) (assert (= without waits)) (check-sat) (pop) ; expect: sat
(echo "without names-its-own:")
(push) (assert (= without names-its-own)) (check-sat) (pop) ; expect: sat
(echo "without least-age:")
(push) (assert (= without least-age)) (check-sat) (pop) ; expect: sat
(echo "without knows-longest:")
(push) (assert (= without knows-longest)) (check-sat) (pop) ; expect: sat
(echo "without founds-unpromised:")
(push) (assert (= without founds-unpromised)) (check-sat) (pop) ; expect: sat
(echo "without as-it-was-read:")
(push) (assert (= without as-it-was-read)) (check-sat) (pop) ; expect: sat
(echo "without renames:")
(push) (assert (= without renames)) (check-sat) (pop) ; expect: sat
(echo "without ends-connections:")
(push) (assert (= without ends-connections)) (check-sat) (pop) ; expect: sat
(echo "without looks-again:")
(push) (assert (= without looks-again)) (check-sat) (pop) ; expect: sat
(echo "without dates-notes:")
(push) (assert (= without dates-notes)) (check-sat) (pop) ; expect: sat
(echo "without keeps:")
(push) (assert (= without keeps)) (check-sat) (pop) ; expect: sat
(echo "without outlives:")
(push) (assert (= without outlives)) (check-sat) (pop) ; expect: sat
(echo "without begins-early:")
(push) (assert (= without begins-early)) (check-sat) (pop) ; expect: sat
(echo "without gives-up-first:")
(push) (assert (= without gives-up-first)) (check-sat) (pop) ; expect: sat
