;; Describes itself by a throw of dice: at times its tool asks for nothing, at times for commands.
(func $list-tools (result i32)
  (i32.store offset=52 (i32.load (i32.const {{tools}})) (i32.wrap_i64 (i64.and (call $random.get-random-u64) (i64.const 1))))
  (i32.const {{tools}}))
