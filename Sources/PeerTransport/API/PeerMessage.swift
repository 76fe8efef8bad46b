package import RaftCore

/// A Raft message and the group it belongs to. Messages to one peer arrive in the order they were sent, or not at all.
package struct PeerMessage: Hashable, Sendable {
    package var group: GroupID
    package var message: Message

    package init(group: GroupID, message: Message) {
        self.group = group
        self.message = message
    }
}
