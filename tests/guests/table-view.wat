;; Shows the user a table with {{columns}} columns and {{rows}} rows, of which none has a cell: what the host would have to
;; add makes the one number times the other.
(func $call (result i32)
  (local $answer i32)
  (drop (memory.grow (i32.const 128)))
  (local.set $answer (call $text @"see the table"))
  (i32.store8 offset=12 (local.get $answer) (i32.const 1))
  (i32.store8 offset=16 (local.get $answer) (i32.const 2))
  (i32.store offset=20 (local.get $answer) (i32.const 1048576))
  (i32.store offset=24 (local.get $answer) (i32.const {{columns}}))
  (i32.store offset=28 (local.get $answer) (i32.const 1048576))
  (i32.store offset=32 (local.get $answer) (i32.const {{rows}}))
  (local.get $answer))
