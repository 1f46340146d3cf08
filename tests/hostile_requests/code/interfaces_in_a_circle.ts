interface A extends B{}
interface B extends C{}
interface C extends A{}
declare let a:A; a.