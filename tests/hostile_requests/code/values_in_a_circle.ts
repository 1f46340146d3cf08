const a = () => b(); const b = () => a();
a().