;; Uses a walk that it dropped, or a handle that it never had.
(func $call (result i32)
  (call $workspace.open-walk @"" (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (global.get $ret))
  (call $workspace.drop-walk (i32.load offset=4 (global.get $ret)))
  (call $workspace.next-entries (i32.add (i32.load offset=4 (global.get $ret)) (i32.const {{beyond}})) (i32.const 1) (global.get $ret))
  (call $answer))
