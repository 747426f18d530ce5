//! Everything that is generated from the WIT contract. No other file names `wit_bindgen`.

wit_bindgen::generate!({
    path: "../../wit",
    world: "plugin-full",
    additional_derives: [Clone, PartialEq],
    export_macro_name: "export_component",
    pub_export_macro: true,
    generate_all,
});
