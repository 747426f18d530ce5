;; Creates a hundred thousand files, one after the other, and closes each.
(func $call (result i32)
  (local $i i32) (local $root i32) (local $at i32)
  (local.set $root (call $root))
  (local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
  (loop $next
    (i64.store (local.get $at) (i64.const 0x3030303030303066))
    ;; The number in letters, four bits each.
    (i32.store8 offset=7 (local.get $at) (i32.add (i32.const 97) (i32.and (local.get $i) (i32.const 15))))
    (i32.store8 offset=6 (local.get $at) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $i) (i32.const 4)) (i32.const 15))))
    (i32.store8 offset=5 (local.get $at) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $i) (i32.const 8)) (i32.const 15))))
    (i32.store8 offset=4 (local.get $at) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $i) (i32.const 12)) (i32.const 15))))
    (i32.store8 offset=3 (local.get $at) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $i) (i32.const 16)) (i32.const 15))))
    (call $filesystem.open-at (local.get $root) (i32.const 0) (local.get $at) (i32.const 8) (i32.const 5) (i32.const 2) (global.get $ret))
    (if (i32.load8_u (global.get $ret))
      (then
        (call $say-number (local.get $i)) (call $say @" created, then ") (call $say-result (global.get $ret))
        (return (call $answer))))
    (call $filesystem.drop-descriptor (i32.load offset=4 (global.get $ret)))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 100000))))
  (call $text @"created"))
