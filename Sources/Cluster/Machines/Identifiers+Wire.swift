public import RaftCore
public import Wire

// The numbers that Raft counts by have the form of their raw values.
extension GroupID: WireValue {}
extension LogIndex: WireValue {}
extension ReplicaID: WireValue {}
extension Term: WireValue {}
