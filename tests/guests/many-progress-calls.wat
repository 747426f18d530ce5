;; Reports a million times.
(func $call (result i32)
  (local $i i32)
  (loop $next
    (call $progress.report @"almost there\e[2J\nand more")
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 1000000))))
  (call $text @"reported"))
