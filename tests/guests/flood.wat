;; Writes 64 MiB, a thousand times what is kept, to its standard output, or to standard error.
(func $call (result i32)
  (local $i i32) (local $stream i32)
  (local.set $stream (call ${{stream}}))
  (loop $next
    (call $streams.check-write (local.get $stream) (global.get $ret))
    (call $streams.write (local.get $stream) (i32.const 65536) (i32.const 65536) (global.get $ret))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 1024))))
  (call $text @"written"))
