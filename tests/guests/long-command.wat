;; Proposes a command line of 200 KiB.
(func $call (result i32)
  (drop (memory.grow (i32.const 16)))
  (memory.fill (i32.const 262144) (i32.const 120) (i32.const 204800))
  (call $commands.run (i32.const 262144) (i32.const 204800) @"" (i64.const 10000000000) (global.get $ret))
  (call $say-command (global.get $ret))
  (call $commands.run @"echo a\0b" @"" (i64.const 10000000000) (global.get $ret))
  (call $say-command (global.get $ret))
  (call $answer))
