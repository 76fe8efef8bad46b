import Cluster
package import Directory
import RecordModel
import Wire

/// Reading the audit logs.
package struct AuditAdministration: Sendable {
    private let administration: Administration

    package init(_ administration: Administration) { self.administration = administration }

    /// What a page of an audit log has.
    package enum Page: Sendable {
        /// Every record of the page, the oldest first, with what is needed to verify their chain.
        case chain(AuditPage)
        /// What a search found.
        case findings(AuditFindings)
    }

    /// Records of an audit log: those that are looked for, and that the administrator may see.
    package func page(_ search: AuditSearch) async throws(RequestFailure) -> Page {
        var search = search
        search.visibleActors = try visibleActors()
        if search.isOfAll, search.before == nil {
            let read = DirectoryRead.audit(search.log, after: search.after, limit: search.limit)
            return .chain(try unpacked(try await self.read(read)))
        }
        let answer = try await read(.search(search))
        if let findings = try? AuditFindings(decoding: answer) { return .findings(findings) }
        throw .tryAgain("the audit log can be searched once every node runs this build")
    }

    private func read(_ read: DirectoryRead) async throws(RequestFailure) -> [UInt8] {
        let node = administration.service.node
        return try await ask(await node.router.read(read.encoded(), from: .directory, by: node.deadline()))
    }

    /// Whose records the administrator may see: an admin of the cluster all, anybody else what they did themselves.
    private func visibleActors() throws(RequestFailure) -> [String]? {
        var access = try administration.access
        if access.role == .admin, access.containers == nil { return nil }
        access.session = nil
        return [access.actor, "\(access.actor) (console)"]
    }
}
