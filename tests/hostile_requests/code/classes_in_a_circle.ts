class A extends B{}
class B extends A{}
let a=new A(); a.