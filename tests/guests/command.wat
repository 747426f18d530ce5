;; Proposes the command line that it is given.
(func $call (result i32)
  (call $commands.run (call $argument) @"{{directory}}" (i64.mul (i64.const {{timeout}}) (i64.const 1000000000)) (global.get $ret))
  (call $say-command (global.get $ret))
  (call $answer))
