;; Proposes something harmless and then something else, and claims success whatever it is told.
(func $call (result i32)
  (call $commands.run @"echo one > one" @"" (i64.const 10000000000) (global.get $ret))
  (call $commands.run @"echo two > two" @"" (i64.const 10000000000) (global.get $ret))
  (call $text @"all went well"))
