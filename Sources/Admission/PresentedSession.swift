package import Directory
import RecordModel

/// The session that a web auth token names, and what the directory says of it.
package struct PresentedSession: Sendable {
    /// By what the directory finds it.
    package let key: SessionKey
    /// When the token was issued, where the cluster signed it; in milliseconds since 1970.
    private let issued: Int64?
    /// Nil: there is no such session, or not any more.
    package var known: Session?

    /// - Parameter signer: opens the tokens of sign-ins; nil where the node has no key for them.
    package init(webAuthToken: String, signer: SessionSigner?) {
        let opened = signer?.open(webAuthToken)
        key = opened.map { SessionKey.signIn(id: $0.sessionID) } ?? .secret(hash: Token.hash(ofSecret: webAuthToken))
        issued = opened?.issued
    }

    /// Whether this cluster signed the token: it is one of a sign-in, however long ago that ended.
    package var isOfSignIn: Bool { issued != nil }

    /// Whose session it is in a container, and how its token is to be replaced; nil for one that stays.
    /// - Throws: `AUTHENTICATION_REQUIRED` where the session is unknown there, over or expired.
    func use(in container: String, now: Int64) throws(ServiceError) -> (accountID: String, use: SessionUse?) {
        guard let token = known?.token, let accountID = token.kind.accountID, let expires = token.kind.expires,
            Bytewise(token.kind.container) == Bytewise(container)
        else {
            throw ServiceError(
                .authenticationRequired,
                "request needs authorization: the ckWebAuthToken is not known for this container, or was revoked")
        }
        guard now < expires else {
            throw ServiceError(
                .authenticationRequired, "request needs authorization: the ckWebAuthToken has expired")
        }
        return (accountID, issued.map { SessionUse(sessionID: token.id, issued: $0, expires: expires) })
    }
}
