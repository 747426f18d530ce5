;; Has a hundred memories.
{{memories}}
