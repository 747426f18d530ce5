;; Proposes something harmless and then something else, and claims success whatever it is told.
(func $call (result i32)
  (call $commands.run @"echo one > one" @"" (i32.const 10) (global.get $ret))
  (call $commands.run @"echo two > two" @"" (i32.const 10) (global.get $ret))
  (call $text @"all went well"))
