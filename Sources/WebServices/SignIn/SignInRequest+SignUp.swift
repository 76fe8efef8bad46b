import Admission
import Cluster
import Directory
import Foundation
import RecordModel
import Service

// Making an account for oneself, where sign-up is open.
extension SignInRequest {
    func showSignUp() async throws(RequestFailure) -> Reply {
        let ticket = url["ticket"]
        let goal = try await goal(ofTicket: ticket)
        try requireOpenSignUp()
        let cookie = BrowserCookie(header: headers.cookie) ?? BrowserCookie()
        return page(.signUp, for: goal, ticket: ticket ?? "", cookie: cookie).page.reply(cookie: cookie)
    }

    func signUpWithForm() async throws(RequestFailure) -> Reply {
        let form = SignInForm(urlEncoded: body)
        let goal = try await goal(ofTicket: form["ticket"])
        let cookie = try checkedCookie(form, goal)
        do throws(RequestFailure) {
            guard form["password"] == form["repeated"] else {
                throw RequestFailure(.badRequest, "The two passwords differ.")
            }
            let account = try await newAccount(name: form["name"] ?? "", password: form["password"] ?? "")
            return finish(try await firstSession(of: account, for: goal, form), of: account, for: goal)
        } catch {
            return again(.signUp, form, goal, cookie, error)
        }
    }

    func signUpWithJSON() async throws(RequestFailure) -> Reply {
        let form = try SignInForm(json: body)
        let goal = try await goal(ofAPIToken: try form.need("apiToken"))
        let account = try await newAccount(name: try form.need("name"), password: try form.need("password"))
        return Self.reply(try await firstSession(of: account, for: goal, form))
    }

    /// Signs in the owner of an account that was just made.
    private func firstSession(
        of account: Account, for goal: SignInGoal, _ form: SignInForm
    ) async throws(RequestFailure) -> BegunSession {
        do throws(RequestFailure) {
            return try await beginSession(
                of: account, by: Self.proof(account), for: goal, keepsSignedIn: form.keepsSignedIn)
        } catch {
            let reason = "The account is made, but nobody is signed in yet: sign in. (\(error.error.reason))"
            throw RequestFailure(
                ServiceError(error.error.code, reason, retryAfterSeconds: error.error.retryAfterSeconds))
        }
    }

    private func requireOpenSignUp() throws(RequestFailure) {
        guard context.service.node.directory.snapshot.isSignUpOpen else {
            throw RequestFailure(
                .accessDenied, "New accounts are made by the administrator here: sign-up is not open.")
        }
    }

    private func newAccount(name given: String, password: String) async throws(RequestFailure) -> Account {
        try countAttempt()
        try await context.service.refreshDirectory()
        try requireOpenSignUp()
        let name = try AdminRequest.accountName(
            given.trimmingCharacters(in: .whitespaces).precomposedStringWithCanonicalMapping)
        guard Account.isPlainLine(name) else {
            throw RequestFailure(.badRequest, "The name has characters that cannot be seen: leave them out.")
        }
        guard try await context.service.accounts.account(named: name) == nil else { throw Self.taken }
        var account = Account(id: AdminRequest.randomHex(bytes: 16), name: name, created: context.service.now)
        account.password = try await context.passwordHash(password)
        do throws(RequestFailure) {
            try await enter(.createAccount(account), by: "sign-up")
        } catch {
            throw [.conflict, .exists].contains(error.error.code) ? Self.taken : error
        }
        return account
    }

    private static let taken = RequestFailure(.exists, "There is an account of this name: choose another name.")
}

extension WebContext {
    /// Hashes a new password, away from event loops.
    /// - Throws: `BAD_REQUEST` for one that is too short or too long, `TRY_AGAIN_LATER` where too many wait.
    func passwordHash(_ password: String) async throws(RequestFailure) -> PasswordHash {
        var generator = SystemRandomNumberGenerator()
        let salt = (0..<PasswordHasher.saltBytes).map { _ in UInt8.random(in: 0 ... .max, using: &generator) }
        do throws(ServiceError) {
            return try await identity.hash { () throws(ServiceError) in
                try PasswordHasher.hash(password, salt: salt)
            }
        } catch {
            throw RequestFailure(error)
        }
    }
}
