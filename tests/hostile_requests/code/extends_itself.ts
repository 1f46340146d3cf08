interface I extends I{}
declare let i:I; i.