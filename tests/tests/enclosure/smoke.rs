use cofferdam_tests::guests::Plan;

#[test]
fn smoke() {
    let house = Plan::default().build();
    println!("{:?}", house.refusals());
    house.assert_is_fine();
}
