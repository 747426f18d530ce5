;; Proposes the command line that it is given.
(func $call (result i32)
  (call $commands.run (call $argument) @"{{directory}}" (i32.const {{timeout}}) (global.get $ret))
  (call $say-command (global.get $ret))
  (call $answer))
