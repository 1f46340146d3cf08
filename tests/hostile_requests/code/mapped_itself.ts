interface A extends Partial<A>{}
declare let a:A; a.