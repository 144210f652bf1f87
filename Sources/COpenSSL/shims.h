// OpenSSL 3, and functions for macros that Swift does not import.

#ifndef SWIFT_REACTOR_COPENSSL_H
#define SWIFT_REACTOR_COPENSSL_H

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#if OPENSSL_VERSION_NUMBER < 0x30000000L
#error "OpenSSL 3 is needed"
#endif

// Every context's settings: no renegotiation, no compression, buffers only while in use, and writes that may be retried
// with the bytes at another address.
static inline void copenssl_configure(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

static inline void copenssl_prefer_own_ciphers(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
}

static inline void copenssl_disable_tickets(SSL_CTX *context) { SSL_CTX_set_options(context, SSL_OP_NO_TICKET); }

static inline int copenssl_set_versions(SSL_CTX *context, int lowest, int highest) {
    return SSL_CTX_set_min_proto_version(context, lowest) == 1 && SSL_CTX_set_max_proto_version(context, highest) == 1;
}

// A server has no session cache, because clients keep the sessions in tickets.
static inline void copenssl_cache_no_sessions(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

// A client's sessions go to the callback only.
static inline void copenssl_report_sessions(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
}

// The info callback's event for a sent alert.
static const int copenssl_alert_is_sent = SSL_CB_WRITE_ALERT;

static inline int copenssl_set_server_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}

// A ticket's authentication code.
static inline int copenssl_use_hmac_sha256(EVP_MAC_CTX *mac, const unsigned char *key, size_t count) {
    OSSL_PARAM parameters[3];
    parameters[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key, count);
    parameters[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0);
    parameters[2] = OSSL_PARAM_construct_end();
    return EVP_MAC_CTX_set_params(mac, parameters);
}

static inline void copenssl_retry_read(BIO *bio) { BIO_set_retry_read(bio); }
static inline void copenssl_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }

static inline int copenssl_reason(unsigned long error) { return ERR_GET_REASON(error); }
static inline int copenssl_library(unsigned long error) { return ERR_GET_LIB(error); }

static inline STACK_OF(X509) *copenssl_new_chain(void) { return sk_X509_new_null(); }
static inline int copenssl_push(STACK_OF(X509) *chain, X509 *certificate) { return sk_X509_push(chain, certificate); }
// Releases the stack but not its certificates.
static inline void copenssl_free_chain(STACK_OF(X509) *chain) { sk_X509_free(chain); }

// Prints a name after RFC 2253, with non-ASCII characters unescaped.
static inline int copenssl_print_name(BIO *bio, const X509_NAME *name) {
    return X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
}

static inline int copenssl_count_names(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }
// The bytes of a name of `kind`, GEN_DNS, GEN_EMAIL, GEN_URI or GEN_IPADD, all of them strings, or NULL.
static inline const ASN1_STRING *copenssl_name(const GENERAL_NAMES *names, int index, int kind) {
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
    return name->type == kind ? name->d.ia5 : NULL;
}

#endif
