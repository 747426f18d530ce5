  ;; For guests that use files.

  ;; The first preopened directory, or -1.
  (func $root (result i32)
    (call $preopens.get-directories (global.get $ret))
    (if (result i32) (i32.eqz (i32.load offset=4 (global.get $ret)))
      (then (i32.const -1))
      (else (i32.load (i32.load (global.get $ret))))))
