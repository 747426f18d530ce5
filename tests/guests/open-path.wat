;; Opens the path that it is given, through WASI and past every check of arguments, and says what is in the file.
(func $call (result i32)
  (call $filesystem.open-at (call $root) (i32.const 1) (call $argument) (i32.const 0) (i32.const 1) (global.get $ret))
  (if (i32.load8_u (global.get $ret)) (then (call $say-result (global.get $ret)) (return (call $answer))))
  (call $filesystem.read (i32.load offset=4 (global.get $ret)) (i64.const 1000) (i64.const 0) (global.get $ret))
  (if (i32.load8_u (global.get $ret)) (then (call $say-result (global.get $ret)) (return (call $answer))))
  (call $say @"read ")
  (call $say-pair (i32.add (global.get $ret) (i32.const 4)))
  (call $answer))
