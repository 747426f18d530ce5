;; Shows the user a table with {{columns}} columns and {{rows}} rows, of which none has a cell: what the host would have to
;; add makes the one number times the other.
(func $call (result i32)
  (local $answer i32)
  (drop (memory.grow (i32.const 128)))
  (memory.fill (i32.const 1048576) (i32.const 44) (i32.const {{columns}}))
  (memory.fill (i32.add (i32.const 1048576) (i32.const {{columns}})) (i32.const 10) (i32.const 1))
  (memory.fill (i32.add (i32.const 1048577) (i32.const {{columns}})) (i32.const 120) (i32.const {{rows}}))
  (local.set $answer (call $text @"see the table"))
  (call $view @"text/csv" (i32.const 0) (i32.const 1048576) (i32.add (i32.const 1) (i32.add (i32.const {{columns}}) (i32.const {{rows}}))))
  (local.get $answer))
